/* 01_uncoalesced.cu - one thread for each element of C; a warp runs down a column.
 *
 * Each thread multiplies a row of A by a column of B. The threads of a warp have neighboring rows
 * and the same column, so at each step they read 32 elements of A that are a whole row apart: 32
 * sectors of 32 bytes, of which each serves one element. All threads read the same element of B,
 * which is one sector. Each FMA (multiply and add) waits for two loads, and the sectors of A are
 * served one after the other: expect about 1 % of the speed of the FMA units. */
#include "device.cuh"

KERNEL(1024) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    i64 row = (i64)blockIdx.y * 32 + threadIdx.x, column = (i64)blockIdx.x * 32 + threadIdx.y;
    if (row >= m || column >= n) return;
    a += row * k, b += column;
    float sum = 0;
    for (i64 i = 0; i < k; i++, a++, b += n) sum += to_float(*a) * to_float(*b);
    c[row * n + column] = to<ELEMENT>(sum);
}
