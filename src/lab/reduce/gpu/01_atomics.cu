/* 01_atomics.cu - every thread adds its element to the sum.
 *
 * atomicAdd makes it right: no addition is lost. But all of them go to one address, and L2 carries
 * them out one after the other. A warp's 32 additions to one address may be combined, the others
 * wait in a queue: memory is idle. */
#include "device.cuh"

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(sum, to_float(x[i]));
}
