/* 05_unrolled.cu - four loads under way in each thread.
 *
 * A load takes hundreds of clock cycles. To keep memory busy in that time, enough other loads must
 * be under way: bytes under way = bandwidth x latency. A thread that loads four times before it
 * stores has 64 bytes under way instead of 16. The four loads are a block's width apart, so that
 * each load is coalesced. */
#include "device.cuh"

#define TIMES 4

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    constexpr i64 EACH = 16 / sizeof(ELEMENT);
    i64 first = (i64)blockIdx.x * 256 * TIMES * EACH + threadIdx.x * EACH;
    if (first + ((TIMES - 1) * 256 + 1) * EACH <= n) {
        uint4 a[TIMES];
        UNROLL for (int k = 0; k < TIMES; k++)
            a[k] = *(const uint4 *)(from + first + k * 256 * EACH);
        UNROLL for (int k = 0; k < TIMES; k++) *(uint4 *)(to + first + k * 256 * EACH) = a[k];
        return;
    }
    for (int k = 0; k < TIMES; k++)
        for (i64 i = first + k * 256 * EACH; i < first + (k * 256 + 1) * EACH && i < n; i++)
            to[i] = from[i];
}
