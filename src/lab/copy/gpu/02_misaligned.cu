/* 02_misaligned.cu - neighbors, but one element off.
 *
 * The threads of a warp touch 32 neighboring elements that begin one element before a multiple of
 * 32 bytes. They fall into five sectors instead of four. The fifth sector is not wasted: the next
 * warp needs it as well and finds it in a cache. Loads and stores make more work for the caches. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x - 1;
    if (i >= 0 && i < n) to[i] = from[i];
}
