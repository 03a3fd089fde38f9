/* 06_async.cu - through shared memory, without registers (cp.async).
 *
 * From compute capability 8.0 on, a thread can start a copy of 16 bytes from memory to shared
 * memory and go on; no register waits for the bytes. A block starts the copies of several pieces
 * and writes the oldest piece while the other pieces are under way. A plain copy does not need this
 * detour through shared memory, but the detour costs little. The detour pays where threads share
 * what they load, as in matmuls. */
#include "mma.cuh"

#define STAGES 4 /* pieces under way */
#define PIECES 8 /* pieces that a block copies */

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    constexpr i64 EACH = 16 / sizeof(ELEMENT), PIECE = 256 * EACH;
    __shared__ __align__(16) uint4 held[STAGES][256];
    i64 first = (i64)blockIdx.x * PIECES * PIECE + threadIdx.x * EACH;
    auto ask = [&](int piece) {
        i64 i = first + piece * PIECE;
        if (piece < PIECES && i + EACH <= n)
            cp_async_16(shared_address(&held[piece % STAGES][threadIdx.x]), from + i, 16);
        cp_async_commit();
    };
    for (int piece = 0; piece < STAGES - 1; piece++) ask(piece);
    for (int piece = 0; piece < PIECES; piece++) {
        i64 i = first + piece * PIECE;
        ask(piece + STAGES - 1);
        cp_async_wait<STAGES - 1>();
        if (i + EACH <= n)
            /* No barrier: each thread reads only the bytes that it copied. */
            *(uint4 *)(to + i) = held[piece % STAGES][threadIdx.x];
        else
            for (; i < n && i < first + piece * PIECE + EACH; i++) to[i] = from[i];
    }
}
