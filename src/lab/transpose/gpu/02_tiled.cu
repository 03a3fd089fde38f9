/* 02_tiled.cu - a tile of 32 x 32 in shared memory.
 *
 * The block reads a tile row by row, and after a barrier writes it column by column. Now both the
 * reads and the writes of memory are coalesced; only the accesses to shared memory go down columns.
 * They have a cost of their own: shared memory has 32 banks, and word i is in bank i % 32. A column
 * of this tile lies in one bank if elements are floats, in two banks if they are bf16. A bank
 * serves the threads of a warp that access it one after the other. */
#include "device.cuh"

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ ELEMENT tile[32][32];
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
