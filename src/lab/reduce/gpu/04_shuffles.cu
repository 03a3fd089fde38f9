/* 04_shuffles.cu - warps add by shuffles.
 *
 * The lanes of a warp can read each other's registers: five shuffles add 32 numbers, without shared
 * memory and without a barrier, because a warp runs together. Only the eight sums of the warps go
 * through shared memory, past one barrier instead of eight. */
#include "device.cuh"

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    __shared__ float part[8];
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    int t = threadIdx.x;
    float a = i < n ? to_float(x[i]) : 0;
    for (int d = 16; d > 0; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    if (t % 32 == 0) part[t / 32] = a;
    __syncthreads();
    if (t >= 32) return;
    a = t < 8 ? part[t] : 0;
    for (int d = 4; d > 0; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    if (t == 0) atomicAdd(sum, a);
}
