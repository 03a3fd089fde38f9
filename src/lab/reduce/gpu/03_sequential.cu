/* 03_sequential.cu - the same tree; the first half of the threads works.
 *
 * In step s (128, 64 ... 1) threads t = 0 ... s - 1 add element t + s to element t. The threads
 * that work are neighbors, so whole warps become idle from the first step on, and no warp diverges
 * until only one warp still works. There are as many loads, additions and barriers as before. */
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
        for (int s = 128; s > 1; s /= 2) {
            __syncthreads();
            if (t < s) part[t] += part[t + s];
        }
        __syncthreads();
        if (t == 0) all += part[0] + part[1]; /* the last step */
    }
    if (t == 0) atomicAdd(sum, all);
}
