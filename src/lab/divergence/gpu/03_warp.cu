/* 03_warp.cu - the branch differs between warps; the threads of a warp agree.
 *
 * Two neighboring warps share 64 elements: one warp takes the elements with even indices, the
 * other warp the elements with odd indices. The branch is the same as before, but all lanes of a
 * warp take the same side and no warp runs both sides, so the kernel takes half the time. Each warp
 * touches every second element, so both warps load the same sectors; the second warp finds them in
 * L1. Other kernels sort their work before they begin, so that the lanes of a warp agree. */
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
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    i64 i = (i64)blockIdx.x * 256 + warp / 2 * 64 + lane * 2 + warp % 2;
    if (i >= n) return;
    float v = to_float(x[i]);
    if (warp % 2)
        v = odd_chain(v);
    else
        v = even_chain(v);
    y[i] = to<ELEMENT>(v);
}
