/* 04_block.cu - the branch differs between blocks.
 *
 * Two neighboring blocks share 512 elements: one block takes the elements with even indices, the
 * other block the elements with odd indices. If all threads of a warp agree on a branch, it does
 * not matter whether the other warps of the block take the same side, because each warp has its own
 * program counter. Expect the same time as before. */
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
    int odd = blockIdx.x % 2;
    i64 i = (i64)(blockIdx.x / 2) * 512 + threadIdx.x * 2 + odd;
    if (i >= n) return;
    float v = to_float(x[i]);
    if (odd)
        v = odd_chain(v);
    else
        v = even_chain(v);
    y[i] = to<ELEMENT>(v);
}
