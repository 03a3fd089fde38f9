/* 03_padded.cu - one unused element at the end of each row of the tile.
 *
 * With rows of 33 words, element k of row x is in bank (33 x + k) % 32 = (x + k) % 32: the elements
 * of a column lie in 32 different banks, and those of a row still do. One number in the source, 3 %
 * more shared memory, and no conflict is left. */
#include "device.cuh"

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ ELEMENT tile[32][32 + 1];
    i64 row = (i64)blockIdx.y * 32, column = (i64)blockIdx.x * 32;
    int x = threadIdx.x, y = threadIdx.y;
    for (int k = y; k < 32; k += 8)
        if (row + k < rows && column + x < columns)
            tile[k][x] = from[(row + k) * columns + column + x];
    __syncthreads();
    for (int k = y; k < 32; k += 8)
        if (row + x < rows && column + k < columns)
            to[(column + k) * rows + row + x] = tile[x][k];
}
