/* 07_bulk.cu - one thread moves 16 KiB with one instruction (cp.async.bulk).
 *
 * From compute capability 9.0 on, a copy engine in each multiprocessor (TMA) moves whole pieces
 * between memory and shared memory. One thread starts the load of a piece, a barrier counts the
 * bytes that arrive, and then the thread starts the store of the piece. No register holds the data,
 * no loop walks over elements, and as many bytes can be in flight as fit into shared memory.
 * Addresses and sizes must be multiples of 16 bytes; a loop copies the remaining elements. */
#include "hopper.cuh"

#define STAGES 4       /* pieces under way in a block */
#define BYTES  16384   /* size of a piece */
#define PIECES 8       /* pieces that a block copies */

KERNEL(32) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    extern __shared__ __align__(128) u8 shared[]; /* STAGES pieces, then as many barriers */
    u32 held = shared_address(shared), barrier = held + STAGES * BYTES;
    constexpr i64 EACH = 16 / sizeof(ELEMENT);
    i64 first = (i64)blockIdx.x * PIECES * BYTES, all = n / EACH * 16; /* bytes */
    const u8 *source = (const u8 *)from + first;
    u8 *result = (u8 *)to + first;
    if (blockIdx.x == 0)
        for (i64 i = n / EACH * EACH + threadIdx.x; i < n; i += 32) to[i] = from[i];
    if (threadIdx.x) return;
    auto size = [&](int piece) {
        i64 left = all - first - (i64)piece * BYTES;
        return piece >= PIECES || left <= 0 ? 0 : left < BYTES ? (int)left : BYTES;
    };
    auto ask = [&](int piece) {
        int s = piece % STAGES;
        if (!size(piece)) return;
        mbarrier_expect(barrier + 8 * s, size(piece));
        bulk_load(held + s * BYTES, source + (i64)piece * BYTES, size(piece),
                  barrier + 8 * s);
    };
    for (int s = 0; s < STAGES; s++) mbarrier_init(barrier + 8 * s, 1);
    fence_barrier_init();
    for (int piece = 0; piece < STAGES - 1; piece++) ask(piece);
    for (int piece = 0; size(piece); piece++) {
        int s = piece % STAGES;
        mbarrier_wait(barrier + 8 * s, piece / STAGES % 2);
        bulk_store(result + (i64)piece * BYTES, held + s * BYTES, size(piece));
        tma_store_commit();
        tma_store_wait_read<1>(); /* the store before this one has read its piece from `held` */
        ask(piece + STAGES - 1);
    }
    tma_store_wait<0>();
}
