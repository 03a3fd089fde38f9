/* 02_select.cu - no branch: every thread computes both chains and selects one result.
 *
 * A select takes one of two registers, depending on a predicate; compilers replace short branches
 * by selects or predicated instructions, since these cost less. All lanes do the same, so none is
 * idle, but half of their results are thrown away. For chains this long, computing both and
 * selecting is as slow as a diverged warp, which runs both chains, too. */
#include "device.cuh"

#define STEPS 256
#define M 0.998f
#define C 0.002f

/* Both chains have the same two operations, in a different order, so they take equally long. */
DEVICE float even_chain(float v)
{
    _Pragma("unroll 16") for (int k = 0; k < STEPS; k++) v = __fadd_rn(__fmul_rn(v, M), C);
    return v;
}
DEVICE float odd_chain(float v)
{
    _Pragma("unroll 16") for (int k = 0; k < STEPS; k++) v = __fmul_rn(__fadd_rn(v, -C), M);
    return v;
}

KERNEL(256) divergence(ELEMENT *y, const ELEMENT *x, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float even = even_chain(to_float(x[i])), odd = odd_chain(to_float(x[i]));
    y[i] = to<ELEMENT>(i % 2 ? odd : even);
}
