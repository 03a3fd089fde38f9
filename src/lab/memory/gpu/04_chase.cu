/* 04_chase.cu - one thread follows a chain of addresses in global memory.
 *
 * Each load needs the result of the load before, so the time of a step is the latency of a load.
 * The kernel measures the time itself, in clocks of the SM and in nanoseconds of the GPU's timer,
 * so the time of the launch is not included. */
#include "device.cuh"

DEVICE u64 global_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Makes the chain: line i, of `bytes` bytes, begins with the address of line next[i]. */
KERNEL(256) memory_link(char *line, const u32 *next, i64 n, i64 bytes)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) *(u64 *)(line + i * bytes) = (u64)(line + next[i] * bytes);
}

/* Follows the chain from `at` for `warm` and then for `steps` steps. out: the last address, and the
 * clocks and nanoseconds of the `steps` steps. */
KERNEL(32) memory_chase(u64 *out, u64 at, i64 warm, i64 steps)
{
    for (i64 i = 0; i < warm; i++) at = *(const u64 *)at;
    if (at == 0) out[0] = 0; /* never true; makes the clock wait for the last load */
    u64 begun_ns = global_ns(), begun = (u64)clock64();
    for (i64 i = 0; i < steps; i++) at = *(const u64 *)at;
    if (at == 0) out[0] = 0;
    u64 ended = (u64)clock64(), ended_ns = global_ns();
    out[0] = at;
    out[1] = ended - begun;
    out[2] = ended_ns - begun_ns;
}
