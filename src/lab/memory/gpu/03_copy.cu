/* 03_copy.cu - each SM copies its part of the working set again and again, 16 bytes per lane.
 *
 * Each of 1024 threads starts four loads before the first store. With PAST_L1 loads bypass L1. */
#include "device.cuh"

#define TIMES 4

DEVICE uint4 load_16(const uint4 *p)
{
#ifdef PAST_L1
    return __ldcg(p);
#else
    return *p;
#endif
}

/* Block b copies n words of 16 bytes at from + b * stride to to + b * n; each thread copies `steps`
 * words. */
KERNEL(1024) memory_copy(uint4 *to, const uint4 *from, i64 n, i64 stride, i64 steps)
{
    u32 length = (u32)n, at = threadIdx.x;
    from += blockIdx.x * stride;
    to += blockIdx.x * n;
    for (i64 i = 0; i < steps; i += TIMES) {
        uint4 a[TIMES];
        u32 put = at;
        UNROLL for (int k = 0; k < TIMES; k++)
        {
            a[k] = load_16(from + at);
            at += 1024;
            if (at >= length) at -= length;
        }
        UNROLL for (int k = 0; k < TIMES; k++)
        {
            to[put] = a[k];
            put += 1024;
            if (put >= length) put -= length;
        }
    }
}
