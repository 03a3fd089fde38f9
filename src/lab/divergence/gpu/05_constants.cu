/* 05_constants.cu - one chain for all, with constants that depend on the index.
 *
 * (v - c) m is v m - c m: the odd chain is the even chain with another constant. One select before
 * the loop chooses the constant, and all lanes run the same instructions. Neighboring threads have
 * neighboring elements again. Where both sides of a branch can be written as one formula, this is
 * the best answer to divergence. The result differs in its last digits, since the operations have
 * another order. */
#include "device.cuh"

#define STEPS 256
#define M 0.998f
#define C 0.002f

KERNEL(256) divergence(ELEMENT *y, const ELEMENT *x, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = to_float(x[i]), constant = i % 2 ? -C * M : C;
    _Pragma("unroll 16") for (int k = 0; k < STEPS; k++)
        v = __fadd_rn(__fmul_rn(v, M), constant); /* no FMA, for as many instructions as before */
    y[i] = to<ELEMENT>(v);
}
