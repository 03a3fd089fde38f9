/* 04_shuffles.cu - warps add by shuffles.
 *
 * The lanes of a warp can read each other's registers: five shuffles add 32 numbers, without shared
 * memory and without a barrier, because a shuffle itself waits for all lanes of its warp. Each warp
 * keeps its own sum; only at the end the eight sums of the block go through shared memory. This
 * needs one barrier in all instead of nine for each chunk. */
#include "device.cuh"

#define CHUNKS 16

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    __shared__ float part[8];
    int t = threadIdx.x;
    float all = 0;
    for (int k = 0; k < CHUNKS; k++) {
        i64 i = ((i64)blockIdx.x * CHUNKS + k) * 256 + t;
        float a = i < n ? to_float(x[i]) : 0;
        for (int d = 16; d > 0; d /= 2) a += __shfl_xor_sync(~0u, a, d);
        all += a;
    }
    if (t % 32 == 0) part[t / 32] = all;
    __syncthreads();
    if (t) return;
    for (int k = 1; k < 8; k++) all += part[k];
    atomicAdd(sum, all);
}
