/* 01_read.cu - each SM reads its part of the working set again and again, 16 bytes per lane.
 *
 * Each SM runs a block of 1024 threads, with four loads in flight in each thread. These are 64 KiB
 * per SM, more than bandwidth times latency of any level. A working set that fits into L1 is served
 * by L1, a larger set by L2 or memory. With PAST_L1 the loads bypass L1, so a set that all blocks
 * share is served by L2 alone. With PAST_L1 each block also begins at another place of the set;
 * otherwise L2 could serve several SMs with one load of a line. The sum is exact, so the host can
 * check it. */
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

/* Block b reads n words of 16 bytes at from + b * stride again and again; each thread makes `steps`
 * loads. */
KERNEL(1024) memory_read(u32 *sum, u64 *clocks, const uint4 *from, i64 n, i64 stride, i64 steps)
{
    __shared__ u32 part[WARP];
    u32 length = (u32)n, at = threadIdx.x;
#ifdef PAST_L1
    at = (u32)((at + blockIdx.x * (n / gridDim.x)) % n);
#endif
    uint2 s = make_uint2(0, 0);
    from += blockIdx.x * stride;
    u64 begun = (u64)clock64();
    for (i64 i = 0; i < steps; i += TIMES) {
        uint4 a[TIMES];
        UNROLL for (int k = 0; k < TIMES; k++)
        {
            a[k] = load_16(from + at);
            at += 1024;
            if (at >= length) at -= length;
        }
        UNROLL for (int k = 0; k < TIMES; k++)
        {
            s.x += a[k].x + a[k].y; /* two instructions of three operands */
            s.y += a[k].z + a[k].w;
        }
    }
    u32 all = s.x + s.y;
    UNROLL for (int d = WARP / 2; d; d /= 2) all += __shfl_xor_sync(~0u, all, d);
    if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = all;
    __syncthreads();
    if (threadIdx.x) return;
    clocks[blockIdx.x] = (u64)clock64() - begun;
    all = 0;
    for (int i = 0; i < WARP; i++) all += part[i];
    sum[blockIdx.x] = all;
}
