/* 02_coalesced.cu - a warp computes neighbours in a row of C.
 *
 * For each k the 32 threads of a warp read the same element of A, which one load serves, and 32
 * neighbours of a row of B, which are one piece of memory: five sectors of 32 bytes instead of 33.
 * Every product still needs two loads, so the load units and L2 are the limit, not arithmetic. */
#include "elements.cuh"

KERNEL(1024) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    i64 row = (i64)blockIdx.y * 32 + threadIdx.y, column = (i64)blockIdx.x * 32 + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (i64 i = 0; i < k; i++)
        sum += to_float(a[row * k + i]) * to_float(b[i * n + column]);
    c[row * n + column] = to<ELEMENT>(sum);
}
