/* attention_short.cuh - shared by forward and backward attention over at most ROWS rows. Two
 * matrices of a head are in shared memory, and each warp has two strips of OWN rows, equally far
 * from the first row and from the last. So under a causal mask all warps have the same work and end
 * together; they wait for each other only while data are loaded.
 *
 * Constants: see attention_grad.cuh; TILE_ROWS is at least ROWS / 4. */
#pragma once
#define GROUP 1 /* as many key heads as query heads */
#include "attention_grad.cuh"

enum {
    ROWS = 2 * BLOCK,    /* a warp has two strips */
    STRIPS = ROWS / OWN, PARTS = ROWS / TILE, /* loaded in sequence */
    AT_SECOND = ROWS * ROW_BYTES, /* of the second matrix, in shared memory */
    AT_OWN = 2 * AT_SECOND,       /* after both matrices */
};
static_assert(N == 1 && TILE % STEP == 0 && PARTS <= 4, "");

/* How BY threads divide N rows: a thread has a chunk of every PASS-th row, always at the same
 * swizzled position or, if PASS is four, at one of two positions. */
template <int N, int BY> struct walk {
    enum { PASS = BY / CHUNKS, TIMES = N / PASS };
    static_assert(N % PASS == 0, "whole passes");
    int row, chunk;
    u32 at;
    __device__ __forceinline__ walk(int thread)
        : row(thread / CHUNKS), chunk(thread % CHUNKS), at(swizzle<CHUNKS>(row, chunk))
    {
    }
    __device__ __forceinline__ u32 offset(int i) const
    {
        return (at ^ (PASS % 8 && i % 2 ? 64 : 0)) + i * PASS * ROW_BYTES;
    }
};
template <int N, int BY>
DEVICE void copy_rows(u32 to, const bf16 *rows, int pitch, int first, int T, int thread)
{
    walk<N, BY> w(thread);
    int left = T - first - w.row; /* from -N on */
    const bf16 *p = rows + (i64)(first + w.row) * pitch + w.chunk * 8;
    if (first + N <= T) {
        UNROLL for (int i = 0; i < w.TIMES; i++)
            cp_async_16(to + w.offset(i), p + (i64)i * w.PASS * pitch, 16);
        return;
    }
    UNROLL for (int i = 0; i < w.TIMES; i++) {
        bool there = i * w.PASS < left;
        cp_async_16(to + w.offset(i), there ? p + (i64)i * w.PASS * pitch : rows, there ? 16 : 0);
    }
}
/* Copies a part of two matrices of the head as one group. */
DEVICE void load_part(const bf16 *first, int pitch, const bf16 *second, int second_pitch, int part,
                      int T)
{
    u32 to = shared_address(shared_memory) + part * TILE_BYTES;
    int thread = opaque(threadIdx.x);
    copy_rows<TILE, THREADS>(to, first, pitch, part * TILE, T, thread);
    copy_rows<TILE, THREADS>(to + AT_SECOND, second, second_pitch, part * TILE, T, thread);
    cp_async_commit();
}
/* Waits until the parts up to this one have arrived. */
DEVICE void wait_for(int part)
{
    if (part == PARTS - 1)
        cp_async_wait<0>();
    else if (part == PARTS - 2)
        cp_async_wait<1>();
    else if (part == PARTS - 3)
        cp_async_wait<2>();
    else
        cp_async_wait<3>();
    __syncthreads();
}

/* Stores scaled sums in whole chunks, through PIECE rows of the warp's shared memory at `piece`. */
template <int PIECE>
DEVICE void store_strip(bf16 *rows, int pitch, int first, int T, u32 piece, const sums &sum,
                        float scale, int lane)
{
    walk<PIECE, WARP> w(lane);
    bf16 *p = rows + (i64)(first + w.row) * pitch + w.chunk * 8;
    const u8 *from = shared_memory + piece;
    UNROLL for (int m = 0; m < M; m++) {
        if (m * 16 % PIECE == 0) __syncwarp();
        UNROLL for (int n = 0; n < D / 8; n++) {
            u8 *at = shared_memory + piece + swizzle<CHUNKS>(lane / 4, n) + lane % 4 * 4 +
                     m * 16 % PIECE * ROW_BYTES;
            UNROLL for (int r = 0; r < 2; r++)
                *(u32 *)(at + 8 * r * ROW_BYTES) =
                    pack_bf16(sum[m][n][2 * r] * scale, sum[m][n][2 * r + 1] * scale);
        }
        if ((m + 1) * 16 % PIECE) continue;
        __syncwarp();
        int done = (m + 1) * 16 - PIECE;
        if (first + OWN <= T) {
            UNROLL for (int i = 0; i < w.TIMES; i++)
                *(uint4 *)(p + (i64)(done + i * w.PASS) * pitch) =
                    *(const uint4 *)(from + w.offset(i));
        } else {
#pragma unroll 1
            for (int i = 0; i < w.TIMES; i++)
                if (first + done + w.row + i * w.PASS < T)
                    *(uint4 *)(p + (i64)(done + i * w.PASS) * pitch) =
                        *(const uint4 *)(from + w.offset(i));
        }
    }
}

/* Returns a if the sign of byte `byte` of `kept` is set, else 0. */
DEVICE float keep(float a, u32 kept, int byte)
{
    return __uint_as_float(__float_as_uint(a) & prmt(kept, 0, 0x8888 + 0x1111 * byte));
}
