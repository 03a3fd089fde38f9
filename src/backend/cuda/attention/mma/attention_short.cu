/* attention_short.cu - attention over at most ROWS rows, bf16, mma.sync: one block per head.
 *
 * qkv (B,T,3,H,HEAD_SIZE) -> y (B,T,H,HEAD_SIZE), log-sum-exp (B,H,T) float. All keys and values of
 * the head are in shared memory. A warp has a strip's queries in registers and walks over the keys
 * that they see, KEYS at a time, from the first on, so it processes the first keys while the other
 * keys arrive. BLOCKS blocks run on an SM, so up to 3 x 132 heads are resident at once.
 *
 * Bound by memory (4 HEAD_SIZE elements a row), then equally by tensor cores, exponentials and,
 * with dropout, random bits. Constants: see attention_short.cuh; KEYS (16, 32), BLOCKS.
 *
 * Softmax: `top` is subtracted from the exponents. A warp raises `top` to the rows' maxima only
 * when the terms of a row would exceed 2^8, so the output is seldom rescaled. */
#include "attention_short.cuh"

enum {
    PIECE = 16,         /* rows of the output that are written at a time */
    TIMES = KEYS / 16,
};

/* A warp's state of its strip: the output, and for rows g and g + 8 of 16 `top` and the sums. */
struct strip {
    left_rows<D / 16> q;
    sums o;
    float top[M][2], sum[M][2];
};

/* Loads the strip's queries as left operands; rows from T on duplicate row T - 1. */
DEVICE void load_queries(strip &r, const bf16 *q, int pitch, int first, int T, int lane)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            const bf16 *row =
                q + (i64)min(first + 16 * m + 8 * h + lane / 4, T - 1) * pitch + lane % 4 * 2;
            UNROLL for (int k = 0; k < D / 16; k++) {
                r.q.r[m][k][h] = *(const u32 *)(row + 16 * k);
                r.q.r[m][k][h + 2] = *(const u32 *)(row + 16 * k + 8);
            }
        }
}

DEVICE void mask(scores (&s)[TIMES], int query, int key, int T, int lane)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int i = 0; i < 4; i++) {
            int row = query + 16 * m + i / 2 * 8 + lane / 4;
            int seen = (CAUSAL ? min(row + 1, T) : T) - key - lane % 4 * 2 - i % 2;
            UNROLL for (int j = 0; j < TIMES; j++)
                UNROLL for (int n = 0; n < 2; n++)
                    if (16 * j + 8 * n >= seen) s[j][m][n][i] = -INFINITY_F;
        }
}

/* If the maximum of any row exceeds `top` by too much, sets `top` of all rows of the warp to their
 * maxima, and rescales sums and outputs. */
DEVICE void lift_top(strip &r, const scores (&s)[TIMES], float scale)
{
    float max[M][2];
    bool far = false;
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            float a = -INFINITY_F;
            UNROLL for (int j = 0; j < TIMES; j++)
                UNROLL for (int n = 0; n < 2; n++)
                    a = fmaxf(a, fmaxf(s[j][m][n][2 * h], s[j][m][n][2 * h + 1]));
            max[m][h] = a;
            far |= (a - r.top[m][h]) * scale > 8;
        }
    if (!__any_sync(~0u, far)) return;
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            float top = fmaxf(max[m][h], __shfl_xor_sync(~0u, max[m][h], 1));
            top = fmaxf(fmaxf(top, __shfl_xor_sync(~0u, top, 2)), r.top[m][h]);
            float factor = ex2_approx((r.top[m][h] - top) * scale);
            r.top[m][h] = top;
            r.sum[m][h] *= factor;
            UNROLL for (int n = 0; n < D / 8; n++)
                r.o[m][n][2 * h] *= factor, r.o[m][n][2 * h + 1] *= factor;
        }
}

/* Processes KEYS keys from `key` on. EDGE: some are masked or beyond T. */
template <bool EDGE>
DEVICE void step_keys(strip &r, int query, int key, int T, float scale, const drop &d)
{
    int lane = threadIdx.x % WARP;
    u32 k_rows = shared_address(shared_memory) + key * ROW_BYTES,
        v_rows = k_rows + AT_SECOND + lane_down(lane);
    scores s[TIMES];
    UNROLL for (int j = 0; j < TIMES; j++)
        rows_by_rows(s[j], r.q, 0, k_rows + j * 16 * ROW_BYTES + lane_across(lane));
    if (EDGE) mask(s, query, key, T, lane);
    lift_top(r, s, scale);
    UNROLL for (int j = 0; j < TIMES; j++) {
        kept_scores a;
#if DROPOUT
        drop_bytes bytes =
            random_bytes<false>(d.seed, d.site, d.step, d.bh, query / 16, key / 16 + j, lane);
#endif
        UNROLL for (int m = 0; m < M; m++)
            UNROLL for (int h = 0; h < 2; h++) {
                float less = r.top[m][h] * scale;
#if DROPOUT
                u32 kept = dropout_kept(bytes.w[m][h], d.less, d.carry);
#endif
                UNROLL for (int n = 0; n < 2; n++) {
                    float low = ex2_approx(s[j][m][n][2 * h] * scale - less);
                    float high = ex2_approx(s[j][m][n][2 * h + 1] * scale - less);
                    r.sum[m][h] += low + high;
                    a[m][0][2 * n + h] = pack_bf16(low, high);
#if DROPOUT
                    drop_pair(a[m][0][2 * n + h], kept, n);
#endif
                }
            }
        add_by_columns(r.o, a, v_rows + j * 16 * ROW_BYTES);
    }
}

/* y = o / sum; log-sum-exp. */
DEVICE void finish(strip &r, bf16 *y, float *lse, int pitch, int first, int T, u32 piece,
                   float scale, float factor, int lane)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            float sum = r.sum[m][h];
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            float by = factor / sum;
            int row = first + 16 * m + 8 * h + lane / 4;
            if (lane % 4 == 0 && row < T) lse[row] = (r.top[m][h] * scale + lg2_approx(sum)) * LN_2;
            UNROLL for (int n = 0; n < D / 8; n++)
                r.o[m][n][2 * h] *= by, r.o[m][n][2 * h + 1] *= by;
        }
    store_strip<PIECE>(y, pitch, first, T, piece, r.o, 1, lane);
}

/* Grid (B * H). `scale` includes log2(e). */
KERNEL_MIN(THREADS, BLOCKS)
attention_short(const bf16 *qkv, const int *step, bf16 *y, float *lse, int T, int H, float scale,
                u32 seed, u32 site, u32 less, u32 carry, float keep_scale)
{
    int b = blockIdx.x / H, head = blockIdx.x % H, pitch = 3 * H * D;
    drop d = {seed, site, DROPOUT ? (u32)*step : 0, blockIdx.x, less, carry};
    const bf16 *q = qkv + ((i64)b * T * 3 * H + head) * D;
    /* The first row of the warp's first strip. The second strip is as far from the first row as
     * this one is from the last. */
    int query = (STRIPS - 1 - threadIdx.x / WARP) * OWN;
#pragma unroll 1
    for (;; query = ROWS - OWN - query) {
        int lane = opaque(threadIdx.x) % WARP;
        strip r;
        load_queries(r, q, pitch, query, T, lane);
        if (query >= BLOCK) {
#pragma unroll 1
            for (int part = 0; part < PARTS; part++)
                load_part(q + H * D, pitch, q + 2 * H * D, pitch, part, T);
            int next = ROWS - OWN - query + lane; /* prefetches the other strip's queries */
            if (next < T)
                for (int at = 0; at < D; at += 32) prefetch_l2(q + (i64)next * pitch + at);
        }
        clear(r.o);
        UNROLL for (int m = 0; m < M; m++) {
            r.top[m][0] = r.top[m][1] = 0.5f * LOWEST_F; /* finite also times LOG2_E */
            r.sum[m][0] = r.sum[m][1] = 0;
        }
        int end = query >= T ? 0 : CAUSAL ? min(query + OWN, T) : T;
#pragma unroll 1
        for (int key = 0; key < (query < BLOCK ? end : T); key += KEYS) {
            if (query >= BLOCK && key % TILE == 0) wait_for(key / TILE);
            if (key >= end) continue;
            if ((CAUSAL && key + KEYS > query + 1) || key + KEYS > T)
                step_keys<true>(r, query, key, T, scale, d);
            else
                step_keys<false>(r, query, key, T, scale, d);
        }
        finish(r, y + ((i64)b * T * H + head) * D, lse + (i64)blockIdx.x * T, H * D, query, T,
               AT_OWN + threadIdx.x / WARP * PIECE * ROW_BYTES, scale, keep_scale, lane);
        if (query < BLOCK) break;
    }
}
