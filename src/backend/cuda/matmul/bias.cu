/* Casts an f32 bias to bf16 for a matmul with bf16 output. Bound by launch latency. */
#include "device.cuh"

KERNEL(256) narrow(const float *from, bf16 *to_bf16, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) to_bf16[i] = to<bf16>(from[i]);
}
