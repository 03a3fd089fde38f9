/* attention_short_grad.cu - attention backward over at most ROWS rows, bf16, mma.sync.
 *
 * dy (B,T,C), qkv (B,T,3C), y (B,T,C), log-sum-exp (B,H,T) -> dqkv (B,T,3C). A head has two blocks.
 * The first block has the queries and dY in shared memory and computes dK and dV. The second block
 * has the keys and values in shared memory and computes dQ:
 *     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dY^T, dS^T = P^T (dP^T - delta),
 *     dV += P^T dY, dK += dS^T Q;
 *     S = Q K^T, dP = dY V^T, dQ += dS K.
 * A warp loads the operands and stores the sums of its own strips of OWN rows, keys or queries.
 * Strips are thin, 16 rows, so that sixteen warps of 128 registers share an SM: with eight warps
 * and strips of 32, each warp waited for its own instructions most of the time. Both strips of a
 * warp together have the same work in all warps (attention_short.cuh); once the head and its
 * statistics are loaded, warps do not wait for each other. S and dP are computed twice, so there
 * are 7 matmuls instead of 5, but blocks share no sums, so every run gives the same bits. Both
 * blocks compute delta.
 *
 * Bound by the operands' shared-memory traffic (at T 256 and head size 64 about 4600 accesses of
 * 512 bytes a head; 7616 mma of 16x8x16) and by instructions. Reads and writes 8 HEAD_SIZE elements
 * a row; the second block of a head reads from L2. Constants: see attention_short.cuh. */
#define STRIP_BLOCKS 1
#include "attention_short.cuh"

enum {
    BLOCKS = 2, /* on an SM */
    KEPT = 1,   /* columns / 16 of K and V in registers, which hold all columns of Q and dY */
    /* Shared memory after the two matrices: two strips a warp; log-sum-exp times log2 e, delta. */
    OWN_BYTES = OWN * ROW_BYTES,
    AT_LSE = AT_OWN + 2 * WARPS * OWN_BYTES,
};

/* Tensors and scales. Addresses are computed at their use: sums take nearly all registers. */
struct head {
    const bf16 *qkv, *dy, *y;
    const float *lse;
    bf16 *dqkv;
    int H, T;
    float factor, unscaled; /* unscaled: 1 / the scale of kept elements, for delta */
};
/* Offset of the block's head in a tensor of `matrices` matrices. */
DEVICE i64 head_offset(const head &h, int matrices, int matrix)
{
    int b = opaque(blockIdx.z);
    return (i64)(b * h.T * matrices + matrix) * (h.H * D) + blockIdx.y * D;
}
/* A warp's strip of two matrices, and its offset in shared memory. */
DEVICE u32 own_at(int warp)
{
    return AT_OWN + warp * 2 * OWN_BYTES;
}
DEVICE void load_own(u32 to, const bf16 *first, int pitch, const bf16 *second, int second_pitch,
                     int row, int T, int lane)
{
    copy_rows<OWN, WARP>(to, first, pitch, row, T, lane);
    copy_rows<OWN, WARP>(to + OWN_BYTES, second, second_pitch, row, T, lane);
    cp_async_commit();
}

/* Prefetches into L2 the rows of y that `statistics` reads. */
template <int N, int BY> DEVICE void prefetch_y(const head &h, int row, int thread)
{
    const bf16 *y = h.y + head_offset(h, 1, 0) + thread % 2 * (D / 2);
    UNROLL for (int i = 0; i < 2 * N / BY; i++) {
        int t = row + i * (BY / 2) + thread / 2;
        if (t < h.T) prefetch_l2(y + (i64)t * h.H * D);
    }
}
/* BY threads, two per row, compute the statistics of N rows from `row` on, whose dY is at
 * `dy_rows`. From T on the log-sum-exp is infinite, so probabilities are 0. */
template <int N, int BY> DEVICE void statistics(const head &h, u32 dy_rows, int row, int thread)
{
    float *stats = (float *)(shared_memory + AT_LSE) + row;
    UNROLL for (int i = 0; i < 2 * N / BY; i++) {
        int r = i * (BY / 2) + thread / 2, half = thread % 2, t = row + r;
        float sum = 0, lse = INFINITY_F;
        if (t < h.T) {
            const bf16 *y = h.y + head_offset(h, 1, 0) + (i64)t * h.H * D + half * (D / 2);
            lse = h.lse[(i64)(blockIdx.z * h.H + blockIdx.y) * h.T + t] * LOG2_E;
            UNROLL for (int c = 0; c < CHUNKS / 2; c++) {
                floats<8> a = load<8>((const bf16 *)(shared_memory + dy_rows +
                                                     swizzle<CHUNKS>(r, half * (CHUNKS / 2) + c)));
                floats<8> b = load<8>(y + c * 8);
                UNROLL for (int k = 0; k < 8; k++) sum += a[k] * b[k];
            }
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        stats[half * ROWS + r] = half ? sum * h.unscaled : lse;
    }
}

/* A step of dK and dV: STEP queries from `query` on, a strip of keys from `key` on. EDGE: some
 * queries do not see all keys. */
template <bool EDGE>
DEVICE void step_keys(sums &dk, sums &dv, const left_rows<KEPT> &k, const left_rows<KEPT> &v,
                      int query, int key, float factor, const u32 (&bytes)[2], const drop &d)
{
    int thread = opaque(threadIdx.x), lane = thread % WARP;
    u32 own = shared_address(shared_memory) + own_at(thread / WARP) + lane_down(lane);
    u32 q_rows = shared_address(shared_memory) + query * ROW_BYTES, dy_rows = q_rows + AT_SECOND;
    const float *lse = (const float *)(shared_memory + AT_LSE) + query + lane % 4 * 2;
    scores s, dp;
    kept_scores a, b;
    rows_by_rows(s, k, own, q_rows + lane_across(lane));
    rows_by_rows(dp, v, own + OWN_BYTES, dy_rows + lane_across(lane));
    UNROLL for (int n = 0; n < 2 * N; n++) {
        float2 l = *(const float2 *)(lse + 8 * n), delta = *(const float2 *)(lse + ROWS + 8 * n);
        UNROLL for (int m = 0; m < M; m++) {
#if DROPOUT
            u32 kept = dropout_kept(bytes[n], d.less, d.carry);
#endif
            float p[4], ds[4];
            UNROLL for (int i = 0; i < 4; i++) {
                p[i] = ex2_approx(s[m][n][i] * factor - (i % 2 ? l.y : l.x));
                int unseen =
                    key + 16 * m + i / 2 * 8 + lane / 4 - (query + 8 * n + lane % 4 * 2 + i % 2);
                if (EDGE && unseen > 0) p[i] = 0;
                float all = p[i];
#if DROPOUT
                p[i] = keep(all, kept, i % 2 * 2 + i / 2);
#endif
                ds[i] = p[i] * dp[m][n][i] - all * (i % 2 ? delta.y : delta.x);
            }
            UNROLL for (int i = 0; i < 2; i++) {
                a[m][n / 2][2 * (n % 2) + i] = pack_bf16(p[2 * i], p[2 * i + 1]);
                b[m][n / 2][2 * (n % 2) + i] = pack_bf16(ds[2 * i], ds[2 * i + 1]);
            }
        }
    }
    add_by_columns(dv, a, dy_rows + lane_down(lane));
    add_by_columns(dk, b, q_rows + lane_down(lane));
}

/* A step of dQ: STEP keys from `key` on, a strip of queries from `query` on. EDGE: some keys are
 * masked or beyond T. */
template <bool EDGE>
DEVICE void step_queries(sums &dq, const left_rows<D / 16> &q, const left_rows<D / 16> &dy_rows,
                         const float (&lse)[M][2], const float (&delta)[M][2], int query, int key,
                         int T, float factor, const u32 (&bytes)[2], const drop &d)
{
    int thread = opaque(threadIdx.x), lane = thread % WARP;
    u32 own = shared_address(shared_memory) + own_at(thread / WARP) + lane_down(lane);
    u32 k_rows = shared_address(shared_memory) + key * ROW_BYTES;
    scores s, dp;
    kept_scores a;
    rows_by_rows(s, q, own, k_rows + lane_across(lane));
    rows_by_rows(dp, dy_rows, own + OWN_BYTES, k_rows + AT_SECOND + lane_across(lane));
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int r = 0; r < 2; r++) {
            UNROLL for (int n = 0; n < 2 * N; n++) {
#if DROPOUT
                u32 kept = dropout_kept(bytes[r], d.less, d.carry);
#endif
                float ds[2];
                UNROLL for (int i = 0; i < 2; i++) {
                    int at = key + 8 * n + lane % 4 * 2 + i,
                        row = query + 16 * m + 8 * r + lane / 4;
                    float p = ex2_approx(s[m][n][2 * r + i] * factor - lse[m][r]),
                          g = dp[m][n][2 * r + i];
                    if (EDGE && ((CAUSAL && at > row) || at >= T)) p = 0;
#if DROPOUT
                    g = keep(g, kept, n % 2 * 2 + i);
#endif
                    ds[i] = p * (g - delta[m][r]);
                }
                a[m][n / 2][n % 2 * 2 + r] = pack_bf16(ds[0], ds[1]);
            }
        }
    add_by_columns(dq, a, k_rows + lane_down(lane));
}

/* Dropout's bytes are generated for two steps at once. */
enum { SPAN = 2 * STEP };
template <bool ROWS_ARE_KEYS> DEVICE drop_bytes draw_span(const drop &d, int query, int key)
{
    drop_bytes r;
#if DROPOUT
    r = random_bytes<ROWS_ARE_KEYS>(d.seed, d.site, d.step, d.bh, query / 16, key / 16,
                                    opaque(threadIdx.x) % WARP);
#endif
    return r;
}
DEVICE void step_bytes(u32 (&to)[2], const drop_bytes &all, int j)
{
    UNROLL for (int i = 0; i < 2; i++) to[i] = j ? all.w[1][i] : all.w[0][i];
}

/* dK and dV of a head. */
DEVICE void grad_keys(const head &h, const drop &d, float scale, float keep_scale)
{
    u32 base = shared_address(shared_memory);
    int key = threadIdx.x / WARP * OWN; /* of the first strip; the second is as far from the end */
    {
        int thread = opaque(threadIdx.x), pitch = 3 * h.H * D;
        prefetch_y<ROWS, THREADS>(h, 0, thread);
#pragma unroll 1
        for (int i = 0; i < PARTS; i++)
            if (i * TILE < h.T)
                load_part(h.qkv + head_offset(h, 3, 0), pitch, h.dy + head_offset(h, 1, 0), h.H * D,
                          i, h.T);
    }
#pragma unroll 1
    for (;; key = ROWS - OWN - key) {
        int thread = opaque(threadIdx.x), lane = thread % WARP, pitch = 3 * h.H * D;
        u32 at_own = own_at(thread / WARP);
        __syncwarp();
        load_own(base + at_own, h.qkv + head_offset(h, 3, 1), pitch, h.qkv + head_offset(h, 3, 2),
                 pitch, key, h.T, lane);
        if (key < BLOCK) {
            cp_async_wait<1>();
            __syncthreads();
            statistics<ROWS, THREADS>(h, AT_SECOND, 0, opaque(threadIdx.x));
            cp_async_wait<0>();
            __syncthreads();
        } else {
            cp_async_wait<0>();
            __syncwarp();
        }
        left_rows<KEPT> k;
        left_rows<KEPT> v;
        sums dk, dv;
        keep_rows(k, base + at_own + lane_down(lane));
        keep_rows(v, base + at_own + OWN_BYTES + lane_down(lane));
        clear(dk);
        clear(dv);
        int query = CAUSAL ? key / SPAN * SPAN : 0, end = key < h.T ? h.T : 0;
        u32 bytes[2];
        if (CAUSAL)
#pragma unroll 1
            for (; query < min(key + OWN, end); query += SPAN) {
                drop_bytes all = draw_span<true>(d, query, key);
#pragma unroll 1
                for (int j = 0; j < 2; j++) {
                    if (query + j * STEP < key) continue;
                    step_bytes(bytes, all, j);
                    step_keys<true>(dk, dv, k, v, query + j * STEP, key, h.factor, bytes, d);
                }
            }
#pragma unroll 1
        for (; query < end; query += SPAN) {
            drop_bytes all = draw_span<true>(d, query, key);
#pragma unroll 1
            for (int j = 0; j < 2; j++) {
                step_bytes(bytes, all, j);
                step_keys<false>(dk, dv, k, v, query + j * STEP, key, h.factor, bytes, d);
            }
        }
        thread = opaque(threadIdx.x);
        lane = thread % WARP;
        at_own = own_at(thread / WARP);
        store_strip<OWN>(h.dqkv + head_offset(h, 3, 1), pitch, key, h.T, at_own, dk, scale, lane);
        store_strip<OWN>(h.dqkv + head_offset(h, 3, 2), pitch, key, h.T, at_own + OWN_BYTES, dv,
                         keep_scale, lane);
        if (key >= BLOCK) break;
    }
}

/* dQ of a head. */
DEVICE void grad_queries(const head &h, const drop &d, float scale)
{
    u32 base = shared_address(shared_memory);
    int query = (STRIPS - 1 - threadIdx.x / WARP) * OWN;
#pragma unroll 1
    for (;; query = ROWS - OWN - query) {
        int thread = opaque(threadIdx.x), lane = thread % WARP, pitch = 3 * h.H * D;
        u32 at_own = own_at(thread / WARP);
        prefetch_y<OWN, WARP>(h, query, lane);
        __syncwarp();
        load_own(base + at_own, h.qkv + head_offset(h, 3, 0), pitch, h.dy + head_offset(h, 1, 0),
                 h.H * D, query, h.T, lane);
        if (query >= BLOCK) {
#pragma unroll 1
            for (int i = 0; i < PARTS; i++)
                load_part(h.qkv + head_offset(h, 3, 1), pitch, h.qkv + head_offset(h, 3, 2), pitch,
                          i, h.T);
            cp_async_wait<PARTS>();
        } else
            cp_async_wait<0>();
        __syncwarp();
        statistics<OWN, WARP>(h, at_own + OWN_BYTES, query, lane);
        if (query >= BLOCK) {
            cp_async_wait<0>();
            __syncthreads();
        }
        __syncwarp();
        left_rows<D / 16> q, dy_rows;
        sums dq;
        float lse[M][2], delta[M][2]; /* of rows g and g + 8 */
        keep_rows(q, base + at_own + lane_down(lane));
        keep_rows(dy_rows, base + at_own + OWN_BYTES + lane_down(lane));
        clear(dq);
        UNROLL for (int m = 0; m < M; m++)
            UNROLL for (int r = 0; r < 2; r++) {
                const float *at =
                    (const float *)(shared_memory + AT_LSE) + query + 16 * m + 8 * r + lane / 4;
                lse[m][r] = at[0];
                delta[m][r] = at[ROWS];
            }
        int end = query >= h.T ? 0 : CAUSAL ? min(query + OWN, h.T) : h.T, key = 0;
        int whole = (CAUSAL ? min(query + 1, end) : end) / SPAN * SPAN;
        u32 bytes[2];
#pragma unroll 1
        for (; key < whole; key += SPAN) {
            drop_bytes all = draw_span<false>(d, query, key);
#pragma unroll 1
            for (int j = 0; j < 2; j++) {
                step_bytes(bytes, all, j);
                step_queries<false>(dq, q, dy_rows, lse, delta, query, key + j * STEP, h.T,
                                    h.factor, bytes, d);
            }
        }
#pragma unroll 1
        for (; key < end; key += SPAN) {
            drop_bytes all = draw_span<false>(d, query, key);
#pragma unroll 1
            for (int j = 0; j < 2; j++) {
                if (key + j * STEP >= end) break;
                step_bytes(bytes, all, j);
                step_queries<true>(dq, q, dy_rows, lse, delta, query, key + j * STEP, h.T, h.factor,
                                   bytes, d);
            }
        }
        thread = opaque(threadIdx.x);
        store_strip<OWN>(h.dqkv + head_offset(h, 3, 0), pitch, query, h.T, own_at(thread / WARP),
                         dq, scale, thread % WARP);
        if (query < BLOCK) break;
    }
}

/* Grid (2, H, B): a head's two blocks are adjacent, because they read the same data. After every
 * `half` heads (half of the number of SMs) the two kinds of blocks swap, so that an SM gets one
 * block of each kind. */
KERNEL_MIN(THREADS, BLOCKS)
attention_short_grad(const bf16 *dy, const bf16 *qkv, const bf16 *y, const float *lse,
                     const int *step, bf16 *dqkv, int T, int H, int half, float scale, u32 seed,
                     u32 site, u32 less, u32 carry, float keep_scale)
{
    int bh = blockIdx.z * H + blockIdx.y;
    head h = {qkv, dy, y, lse, dqkv, H, T, scale * LOG2_E, 1 / keep_scale};
    drop d = {seed, site, DROPOUT ? (u32)*step : 0, (u32)bh, less, carry};
    if ((blockIdx.x ^ (u32)(bh / half)) % 2 == 0)
        grad_keys(h, d, scale * keep_scale, keep_scale);
    else
        grad_queries(h, d, scale * keep_scale);
}
