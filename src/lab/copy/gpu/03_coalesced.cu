/* 03_coalesced.cu - neighbouring threads touch neighbouring elements.
 *
 * The loads of a warp fall into 128 bytes that belong together, and the hardware makes 4 sectors of
 * them, all useful: this is what "coalesced" means. Everything else is as simple as before: one
 * element per thread. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) to[i] = from[i];
}
