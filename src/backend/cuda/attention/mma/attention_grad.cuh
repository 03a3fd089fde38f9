/* attention_grad.cuh - shared by bf16 attention backward kernels: tiles, warp matmuls, dropout.
 *
 * Constants: HEAD_SIZE (a multiple of 16), GROUP (query heads per key and value head), WARPS,
 * TILE_ROWS (32 or 64), CAUSAL, DROPOUT. A warp owns 16 M rows (keys in one kernel, queries in the
 * other), keeps their operands and sums in registers, and walks over the rows of the other side, 16
 * N at a time. It then has 16 M x 16 N probabilities, two blocks of 16x16. Lanes never exchange
 * them: packed accumulators of one matmul are the left operand of the next. */
#pragma once
#include "mma.cuh"

enum {
    TF32 = 0, D = HEAD_SIZE, CHUNKS = D / 8, /* 16-byte chunks in a row */
    ROW_BYTES = 2 * D, THREADS = WARP * WARPS,
/* STRIP_BLOCKS is set by sources whose warps own fewer rows; if it is 1, a random_bytes call serves
 * two steps. */
#ifdef STRIP_BLOCKS
    M = STRIP_BLOCKS,
    N = 1,
#else
    M = D <= 64 ? 2 : 1,
    N = 2 / M,
#endif
    OWN = 16 * M,              /* rows of a warp */
    BLOCK = OWN * WARPS,       /* rows of a block */
    STEP = 16 * N, TILE = TILE_ROWS, /* rows that are loaded at a time */
    TILE_BYTES = TILE * ROW_BYTES,
    STATS = 2 * TILE,          /* floats of a tile: log-sum-exp times log2 e, then delta */
};

#include "attention_fragments.cuh"
#include "attention_heads.cuh"

typedef u32 kept_scores[M][N][4];    /* a left operand 16M x 16N */

/* A lane's row address for ldmatrix of 16 rows of a tile: left or transposed right operands. */
DEVICE u32 lane_down(int lane)
{
    return swizzle<CHUNKS>(lane % 16, lane / 16);
}

/* Starts copying rows first ... first + ROWS - 1 to a tile; rows from T on become zero. */
template <int ROWS> DEVICE void load_tile(u32 tile, const bf16 *rows, int pitch, int first, int T)
{
    int thread = opaque(threadIdx.x);
    UNROLL for (int at = 0; at < ROWS * CHUNKS; at += THREADS) {
        int i = at + thread;
        int row = i / CHUNKS, chunk = i % CHUNKS, t = first + row;
        cp_async_16(tile + swizzle<CHUNKS>(row, chunk),
                    rows + (i64)(t < T ? t : 0) * pitch + chunk * 8, t < T ? 16 : 0);
    }
}
DEVICE void load_stats(u32 to, const float *stats)
{
    if (threadIdx.x < STATS / 4) cp_async_16(to + threadIdx.x * 16, stats + threadIdx.x * 4, 16);
}
/* s = a b^T; arguments as in add_rows_by_rows. */
template <int KEPT> DEVICE void rows_by_rows(scores &s, const left_rows<KEPT> &a, u32 left, u32 at)
{
    clear(s);
    add_rows_by_rows(s, a, left, at);
}
/* sum += a b; `at` is the lane_down address of the rows of b. */
DEVICE void add_by_columns(sums &sum, const kept_scores &a, u32 at)
{
    UNROLL for (int n = 0; n < N; n++)
        UNROLL for (int c = 0; c < D / 16; c++) {
            u32 b[4];
            ldmatrix_x4_trans(b, along(at + n * 16 * ROW_BYTES, 2 * c));
            UNROLL for (int m = 0; m < M; m++) {
                mma_m16n8k16(sum[m][2 * c], a[m][n], b[0], b[1]);
                mma_m16n8k16(sum[m][2 * c + 1], a[m][n], b[2], b[3]);
            }
        }
}
DEVICE void pack(kept_scores &a, const scores &s)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < N; n++)
            UNROLL for (int i = 0; i < 4; i++)
                a[m][n][i] =
                    pack_bf16(s[m][2 * n + i / 2][i % 2 * 2], s[m][2 * n + i / 2][i % 2 * 2 + 1]);
}
/* Stores a warp's scaled sums through its rows of a tile, which no other warp may use. */
DEVICE void store_sums(bf16 *rows, int pitch, int first, int T, u32 tile, const sums &sum,
                       float scale, int lane)
{
    int g = lane / 4, q = lane % 4;
    __syncwarp();
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < D / 8; n++)
            UNROLL for (int h = 0; h < 2; h++)
                *(u32 *)(shared_memory + tile + swizzle<CHUNKS>(16 * m + 8 * h + g, n) + 4 * q) =
                    pack_bf16(sum[m][n][2 * h] * scale, sum[m][n][2 * h + 1] * scale);
    __syncwarp();
    UNROLL for (int i = lane; i < OWN * CHUNKS; i += WARP) {
        int row = i / CHUNKS, chunk = i % CHUNKS;
        if (first + row < T)
            *(uint4 *)(rows + (i64)(first + row) * pitch + chunk * 8) =
                *(const uint4 *)(shared_memory + tile + swizzle<CHUNKS>(row, chunk));
    }
}

/* Marks dropped probabilities by a negative sign, so that no separate mask is needed. pack_kept
 * turns negative probabilities into zeros; the kept probabilities are scaled later. */
DEVICE void mark_dropped(scores &p, const drop_bytes &d, int threshold)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < 2 * N; n++)
            UNROLL for (int i = 0; i < 4; i++)
                if (drop_byte<true>(d, m, n, i) < threshold) p[m][n][i] = -p[m][n][i];
}
DEVICE bool is_dropped(float p)
{
    return __float_as_int(p) < 0;
}
DEVICE void pack_kept(kept_scores &a, const scores &p)
{
    scores kept;
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < 2 * N; n++)
            UNROLL for (int i = 0; i < 4; i++)
                kept[m][n][i] = is_dropped(p[m][n][i]) ? 0 : p[m][n][i];
    pack(a, kept);
}
DEVICE void drop_gradients(scores &dp, const drop_bytes &d, int threshold, float scale)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < 2 * N; n++)
            UNROLL for (int i = 0; i < 4; i++)
                dp[m][n][i] = drop_byte<false>(d, m, n, i) >= threshold ? dp[m][n][i] * scale : 0;
}
