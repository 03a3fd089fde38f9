/* 05_shared.cu - shared memory: the bandwidth of all warps of an SM, and the latency of one thread.
 *
 * Shared memory is part of the SM, so its speed does not depend on a working set: 32 banks deliver
 * 4 bytes each per clock. */
#include "device.cuh"

#define TIMES 4
#define WORDS 2048 /* words of 16 bytes */
#define LINKS 1024

/* Copies n words of `from` to shared memory; then each thread makes `steps` loads of 16 bytes. */
KERNEL(1024) memory_shared(u32 *sum, u64 *clocks, const uint4 *from, i64 n, i64 steps)
{
    __shared__ uint4 word[WORDS];
    __shared__ u32 part[WARP];
    u32 at = threadIdx.x, length = (u32)n;
    for (u32 i = threadIdx.x; i < length; i += 1024) word[i] = from[i];
    uint2 s = make_uint2(0, 0);
    __syncthreads();
    u64 begun = (u64)clock64();
    for (i64 i = 0; i < steps; i += TIMES) {
        uint4 a[TIMES];
        UNROLL for (int k = 0; k < TIMES; k++)
        {
            a[k] = word[at];
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

DEVICE u64 global_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Follows the chain next[0 ... LINKS - 1] from element 0. out: the element after `steps` steps, and
 * the clocks and nanoseconds that the steps took. */
KERNEL(32) memory_shared_chase(u64 *out, const u32 *next, i64 steps)
{
    __shared__ u32 link[LINKS];
    for (int i = threadIdx.x; i < LINKS; i += 32) link[i] = next[i] * 4;
    __syncthreads();
    if (threadIdx.x) return;
    u32 at = 0;
    u64 begun_ns = global_ns(), begun = (u64)clock64();
    for (i64 i = 0; i < steps; i++) at = *(const u32 *)((const char *)link + at);
    if (at == ~0u) out[0] = 0; /* never true; makes the clock wait for the last load */
    u64 ended = (u64)clock64(), ended_ns = global_ns();
    out[0] = at / 4;
    out[1] = ended - begun;
    out[2] = ended_ns - begun_ns;
}
