/* 02_divergent.cu - a tree in shared memory; every second thread works.
 *
 * The block adds 256 elements in eight steps (s = 1, 2, 4 ... 128), CHUNKS times, and makes one
 * atomic addition in the end. In step s the threads whose number is a multiple of 2s work. Up to s
 * = 16 they are spread over all warps, so every warp runs with half, a quarter, an eighth of its
 * lanes: the warps diverge. */
#include "device.cuh"

#define CHUNKS 16

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    __shared__ float part[256];
    int t = threadIdx.x;
    float all = 0;
    for (int k = 0; k < CHUNKS; k++) {
        i64 i = ((i64)blockIdx.x * CHUNKS + k) * 256 + t;
        __syncthreads(); /* all threads are done with the previous chunk */
        part[t] = i < n ? to_float(x[i]) : 0;
        for (int s = 1; s < 128; s *= 2) {
            __syncthreads();
            if (t % (2 * s) == 0) part[t] += part[t + s];
        }
        __syncthreads();
        if (t == 0) all += part[0] + part[128]; /* the last step */
    }
    if (t == 0) atomicAdd(sum, all);
}
