/* 02_misaligned.cu - neighbors, but one element off.
 *
 * The threads of a warp touch 32 neighboring elements that begin one element before a multiple of
 * 32 bytes. 32 floats then lie in five sectors instead of four. The fifth sector is not wasted: the
 * next warp needs this sector as well and finds it in a cache. So memory moves hardly more bytes,
 * but the caches must serve more sectors for each load and store. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x - 1;
    if (i >= 0 && i < n) to[i] = from[i];
}
