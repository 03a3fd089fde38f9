/* 04_vectorized.cu - 16 bytes per thread.
 *
 * A thread can load 16 bytes with one instruction (a uint4). For floats, a quarter of the threads
 * and of the instructions move the same bytes, and each warp has 512 bytes in flight instead of
 * 128: more bytes in flight hide more of the latency of memory. The last elements, which do not
 * fill 16 bytes, are copied one by one. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    constexpr i64 EACH = 16 / sizeof(ELEMENT);
    i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * EACH;
    if (i + EACH <= n) {
        *(uint4 *)(to + i) = *(const uint4 *)(from + i);
        return;
    }
    for (; i < n; i++) to[i] = from[i];
}
