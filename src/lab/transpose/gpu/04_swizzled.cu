/* 04_swizzled.cu - no padding: the column is XORed with the row.
 *
 * Element (x, k) is stored in column x ^ k of row x. For a fixed x, and for a fixed k, the 32
 * values of x ^ k are all different, so neither rows nor columns have bank conflicts. Here the
 * swizzle gains no more than padding. But padded rows do not begin at multiples of 16 bytes, which
 * vector accesses, cp.async and TMA need, so today's fast kernels swizzle. */
#include "device.cuh"

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ ELEMENT tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    i64 row = (i64)blockIdx.y * 32, column = (i64)blockIdx.x * 32;
    UNROLL for (int k = 0; k < 32; k += 8)
        if (row + y + k < rows && column + x < columns)
            tile[y + k][x ^ (y + k)] = from[(row + y + k) * columns + column + x];
    __syncthreads();
    UNROLL for (int k = 0; k < 32; k += 8)
        if (row + x < rows && column + y + k < columns)
            to[(column + y + k) * rows + row + x] = tile[x][(y + k) ^ x];
}
