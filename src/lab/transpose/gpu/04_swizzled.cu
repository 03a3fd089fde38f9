/* 04_swizzled.cu - no padding: the column is XORed with the row.
 *
 * Element (x, k) is stored in column x ^ k of row x. For a fixed x, and for a fixed k, the 32
 * values of x ^ k are all different, so neither rows nor columns have conflicts. Padding does the
 * same here. But padding moves rows off multiples of 16 bytes, which vector accesses, cp.async and
 * TMA need, so the fast kernels of today swizzle. */
#include "device.cuh"

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    __shared__ ELEMENT tile[32][32];
    i64 row = (i64)blockIdx.y * 32, column = (i64)blockIdx.x * 32;
    int x = threadIdx.x, y = threadIdx.y;
    for (int k = y; k < 32; k += 8)
        if (row + k < rows && column + x < columns)
            tile[k][x ^ k] = from[(row + k) * columns + column + x];
    __syncthreads();
    for (int k = y; k < 32; k += 8)
        if (row + x < rows && column + k < columns)
            to[(column + k) * rows + row + x] = tile[x][k ^ x];
}
