/* 01_atomics.cu - every thread adds its element to the sum.
 *
 * atomicAdd makes the sum right: no addition is lost. But all additions go to one address, and L2
 * carries them out one after the other. The 32 additions of a warp may be combined into one; the
 * additions of different warps wait in a queue, and memory is idle. */
#include "device.cuh"

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(sum, to_float(x[i]));
}
