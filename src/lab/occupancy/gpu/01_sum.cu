/* 01_sum.cu - a sum with one load under way in each thread, and registers that are only occupied.
 *
 * A thread waits for its 16 bytes before it loads the next, so an SM has 512 bytes in flight for
 * each warp that it holds, and memory is busy only with enough warps. KEPT words occupy as many
 * registers of each thread during the loop: they are loaded before the loop and used after it. The
 * branch in the loop, which is hardly ever taken, keeps the compiler from loading the words later.
 * The launch may allocate shared memory, which the kernel does not use. */
#include "device.cuh"

KERNEL(128) occupancy(u32 *sum, const uint4 *from, i64 n)
{
    const volatile u32 *own = (const u32 *)from + threadIdx.x;
    u32 kept[KEPT + 1], all = 0;
    i64 step = (i64)gridDim.x * 128;
    UNROLL for (int k = 0; k < KEPT; k++) kept[k] = own[k];
#pragma unroll 1
    for (i64 i = (i64)blockIdx.x * 128 + threadIdx.x; i < n; i += step) {
        uint4 a = from[i];
        all += a.x + a.y + a.z + a.w;
        if (all == 0) UNROLL for (int k = 0; k < KEPT; k++) kept[k] += a.x;
    }
    UNROLL for (int k = 0; k < KEPT; k++) all = (all ^ kept[k]) * 16777619u;
    atomicAdd(sum + blockIdx.x, all);
}
