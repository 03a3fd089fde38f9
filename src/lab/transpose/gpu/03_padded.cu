/* 03_padded.cu - one unused element at the end of each row of the tile.
 *
 * With rows of 33 floats, element k of row x is in bank (33 x + k) % 32 = (x + k) % 32: the
 * elements of a column lie in 32 different banks, and so do the elements of a row. This changes one
 * number in the source, needs 3 % more shared memory, and leaves no conflict. (In bf16 two elements
 * of every second column share a bank.) */
#include "device.cuh"

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ ELEMENT tile[32][32 + 1];
    int x = threadIdx.x, y = threadIdx.y;
    i64 row = (i64)blockIdx.y * 32, column = (i64)blockIdx.x * 32;
    UNROLL for (int k = 0; k < 32; k += 8)
        if (row + y + k < rows && column + x < columns)
            tile[y + k][x] = from[(row + y + k) * columns + column + x];
    __syncthreads();
    UNROLL for (int k = 0; k < 32; k += 8)
        if (row + x < rows && column + y + k < columns)
            to[(column + y + k) * rows + row + x] = tile[x][y + k];
}
