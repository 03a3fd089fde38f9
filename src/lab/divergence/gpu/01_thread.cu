/* 01_thread.cu - the branch differs between the threads of a warp.
 *
 * Element i goes through one chain of arithmetic if i is even and through another if it is odd;
 * both chains take equally long. Thread i has element i. The 32 threads of a warp share one
 * instruction unit, which issues one instruction for all of them at a time. If the threads take
 * different sides of a branch, the warp runs one side while the lanes of the other side are idle,
 * and then the other side: the branch takes the time of both sides. There is so much arithmetic
 * that memory does not matter here. */
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
    float v = to_float(x[i]);
    if (i % 2)
        v = odd_chain(v);
    else
        v = even_chain(v);
    y[i] = to<ELEMENT>(v);
}
