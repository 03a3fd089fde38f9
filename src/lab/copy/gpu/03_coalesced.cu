/* 03_coalesced.cu - neighboring threads touch neighboring elements.
 *
 * The loads of a warp fall into 128 contiguous bytes, and the hardware combines them into 4
 * sectors, all useful: this is what "coalesced" means. Each thread still copies one element. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) to[i] = from[i];
}
