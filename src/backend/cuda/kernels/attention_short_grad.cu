/* attention_short_grad.cu - the backward of attention over at most ROWS rows, bf16, on tensor cores by mma.sync: dq, dk and
 * dv of a head in two blocks, each written once.
 *
 * dy (B,T,C), qkv (B,T,3C), y (B,T,C), log-sum-exp (B,H,T) -> dqkv (B,T,3C). One block has all queries and dO of a head in
 * shared memory and makes dK and dV, the other all keys and values and makes dQ:
 *     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dO^T, dS^T = P^T (dP^T - delta), dV += P^T dO, dK += dS^T Q;
 *     S = Q K^T, dP = dO V^T, dQ += dS K.
 * A warp has strips of OWN rows of its own, keys or queries, whose operands it loads and whose sums it writes alone; of a
 * pair of strips one sees as much more as the other less, so the warps of a block end together, and wait for each other
 * only while the head comes in. S and dP are computed twice, 7 products instead of 5, but nothing is added up
 * between blocks: no sums in memory, the same bits in every run. delta = rowsum(dy y) is made by whoever needs it.
 *
 * Bound by tensor cores (at T 256, head size 64: 16000 products of 16x8x16 a head), then by instructions (with dropout
 * two thirds of as many clocks); moves 8 HEAD_SIZE elements a row, what the second block of a head reads comes from the second
 * cache. Constants: HEAD_SIZE (16, 32, 64), WARPS 4, TILE_ROWS, CAUSAL, DROPOUT. */
#define GROUP 1 /* queries and keys have as many heads */
#include "attention_grad.cuh"

enum {
    ROWS = 2 * BLOCK,        /* a warp has two strips */
    STRIPS = ROWS / OWN,
    PARTS = ROWS / TILE,     /* that are waited for one after the other */
    BLOCKS = D > 64 ? 1 : 2, /* on a multiprocessor */
    K_KEPT = D == 64 ? 4 - DROPOUT : D / 16, /* columns of K and V in registers, by 16 */
    V_KEPT = D == 64 ? 2 : D / 16,
    /* Shared memory: two matrices of the head; two strips of each warp; log-sum-exp in bits, and delta. */
    AT_SECOND = ROWS * ROW_BYTES,
    AT_OWN = 2 * AT_SECOND,
    OWN_BYTES = OWN * ROW_BYTES,
    AT_LSE = AT_OWN + 2 * WARPS * OWN_BYTES,
    AT_DELTA = AT_LSE + 4 * ROWS,
};
static_assert(M == 2 && TILE % STEP == 0 && PARTS == 4, "");

/* What all functions know: the tensors, which head of them, and what the scores are multiplied by. Addresses are computed where
 * they are used, as the sums take all registers but a few. */
struct head {
    const bf16 *qkv, *dy, *y;
    const float *lse;
    bf16 *dqkv;
    int H, T, b, h;
    float factor;
};
/* Where the head begins in a tensor of so many matrices. */
DEVICE i64 start(const head &h, int matrices, int matrix)
{
    int b = forgotten(h.b);
    return (((i64)b * h.T * matrices + matrix) * h.H + h.h) * D;
}
/* Dropout's key, and what compares bytes with the threshold; delta is divided by the scale of what is kept. */
struct drop {
    u32 seed, site, step, bh, less, carry;
    float unscaled;
};

/* N rows from `first` on, by so many threads: each has one chunk of every PASS rows, at the same place of the swizzle or, where
 * four rows are passed at a time, at either of two. */
template <int N, int BY> struct walk {
    enum { PASS = BY / CHUNKS, TIMES = N / PASS };
    int row, chunk;
    u32 at;
    __device__ __forceinline__ walk(int thread) : row(thread / CHUNKS), chunk(thread % CHUNKS), at(swizzle<CHUNKS>(row, chunk)) {}
    __device__ __forceinline__ u32 offset(int i) const { return (at ^ (PASS % 8 && i % 2 ? 64 : 0)) + i * PASS * ROW_BYTES; }
};
template <int N, int BY> DEVICE void copy_rows(u32 to, const bf16 *rows, int pitch, int first, int T, int thread)
{
    walk<N, BY> w(thread);
    int left = T - first - w.row; /* from -N on */
    const bf16 *p = rows + (i64)(first + w.row) * pitch + w.chunk * 8;
    if (first + N <= T) {
#pragma unroll
        for (int i = 0; i < w.TIMES; i++) cp_async_16(to + w.offset(i), p + (i64)i * w.PASS * pitch, 16);
        return;
    }
#pragma unroll
    for (int i = 0; i < w.TIMES; i++) {
        bool there = i * w.PASS < left;
        cp_async_16(to + w.offset(i), there ? p + (i64)i * w.PASS * pitch : rows, there ? 16 : 0);
    }
}
/* A part of two matrices of the head, as one group of copies; a strip of both for one warp. */
DEVICE void load_part(const bf16 *first, int pitch, const bf16 *second, int second_pitch, int part, int T)
{
    u32 to = shared_address(shared_memory) + part * TILE_BYTES;
    int thread = forgotten(threadIdx.x);
    copy_rows<TILE, THREADS>(to, first, pitch, part * TILE, T, thread);
    copy_rows<TILE, THREADS>(to + AT_SECOND, second, second_pitch, part * TILE, T, thread);
    cp_async_commit();
}
DEVICE void load_own(u32 to, const bf16 *first, int pitch, const bf16 *second, int second_pitch, int row, int T, int lane)
{
    copy_rows<OWN, WARP>(to, first, pitch, row, T, lane);
    copy_rows<OWN, WARP>(to + OWN_BYTES, second, second_pitch, row, T, lane);
    cp_async_commit();
}
/* A strip of sums, scaled, through the warp's strip of shared memory to memory in whole chunks. */
DEVICE void store_own(bf16 *rows, int pitch, int first, int T, u32 strip, const sums &sum, float scale, int lane)
{
    walk<OWN, WARP> w(lane);
    __syncwarp();
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
        u8 *at = shared_memory + strip + swizzle<CHUNKS>(lane / 4, n) + lane % 4 * 4;
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                *(u32 *)(at + (16 * m + 8 * r) * ROW_BYTES) = pack_bf16(sum[m][n][2 * r] * scale, sum[m][n][2 * r + 1] * scale);
    }
    __syncwarp();
    const u8 *from = shared_memory + strip;
    bf16 *p = rows + (i64)(first + w.row) * pitch + w.chunk * 8;
    if (first + OWN <= T) {
#pragma unroll
        for (int i = 0; i < w.TIMES; i++) *(uint4 *)(p + (i64)i * w.PASS * pitch) = *(const uint4 *)(from + w.offset(i));
        return;
    }
    for (int i = 0; i < w.TIMES; i++)
        if (first + w.row + i * w.PASS < T) *(uint4 *)(p + (i64)i * w.PASS * pitch) = *(const uint4 *)(from + w.offset(i));
}
/* Until the parts up to this one are there. */
DEVICE void wait_for(int part)
{
    if (part == 0)
        cp_async_wait<PARTS - 1>();
    else if (part == 1)
        cp_async_wait<PARTS - 2>();
    else if (part == 2)
        cp_async_wait<PARTS - 3>();
    else
        cp_async_wait<0>();
    __syncthreads();
}

/* Statistics of N rows from `row` on by so many threads, two for a row; dO of them lies at `dout`. From T on the log-sum-exp is
 * infinite, so the probabilities are 0. */
template <int N, int BY> DEVICE void statistics(const head &h, u32 dout, int row, int thread, float unscaled)
{
    float *stats = (float *)(shared_memory + AT_LSE) + row;
#pragma unroll
    for (int i = 0; i < 2 * N / BY; i++) {
        int r = i * (BY / 2) + thread / 2, half = thread % 2, t = row + r;
        float sum = 0, lse = INFINITY_F;
        if (t < h.T) {
            const bf16 *y = h.y + start(h, 1, 0) + (i64)t * h.H * D + half * (D / 2);
            lse = h.lse[(i64)(h.b * h.H + h.h) * h.T + t] * LOG2_E;
#pragma unroll
            for (int c = 0; c < CHUNKS / 2; c++) {
                floats<8> a = load<8>((const bf16 *)(shared_memory + dout + swizzle<CHUNKS>(r, half * (CHUNKS / 2) + c)));
                floats<8> b = load<8>(y + c * 8);
#pragma unroll
                for (int k = 0; k < 8; k++) sum += a[k] * b[k];
            }
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        stats[half * ROWS + r] = half ? sum * unscaled : lse;
    }
}

/* All bits of those bytes' elements that are kept, for byte `byte`. */
DEVICE float keep(float a, u32 kept, int byte)
{
    return __uint_as_float(__float_as_uint(a) & prmt(kept, 0, 0x8888 + 0x1111 * byte));
}

/* One step of dK and dV: STEP queries from `query` on, a strip of keys from `key` on. EDGE: some keys are not seen. */
template <bool EDGE>
DEVICE void step_keys(sums &dk, sums &dv, const left_rows<K_KEPT> &k, const left_rows<V_KEPT> &v, u32 own, int query,
                      int key, float factor, const drop &d)
{
    int lane = forgotten(threadIdx.x) % WARP;
    u32 q_rows = shared_address(shared_memory) + query * ROW_BYTES, dy_rows = q_rows + AT_SECOND;
    const float *lse = (const float *)(shared_memory + AT_LSE) + query + lane % 4 * 2;
    scores s, dp;
    kept_scores a, b;
#if DROPOUT
    drop_bytes bytes = draw<true>(d.seed, d.site, d.step, d.bh, query / 16, key / 16, lane);
#endif
    rows_by_rows(s, k, own, q_rows + lane_across(lane));
    rows_by_rows(dp, v, own + OWN_BYTES, dy_rows + lane_across(lane));
#pragma unroll
    for (int n = 0; n < 2; n++) {
        float2 l = *(const float2 *)(lse + 8 * n), delta = *(const float2 *)(lse + ROWS + 8 * n);
#pragma unroll
        for (int m = 0; m < M; m++) {
#if DROPOUT
            u32 kept = dropout_kept(bytes.w[m][n], d.less, d.carry);
#endif
            float p[4], ds[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                p[i] = ex2_approx(s[m][n][i] * factor - (i % 2 ? l.y : l.x));
                int unseen = key + 16 * m + i / 2 * 8 + lane / 4 - (query + 8 * n + lane % 4 * 2 + i % 2);
                if (EDGE && unseen > 0) p[i] = 0;
                float all = p[i];
#if DROPOUT
                p[i] = keep(all, kept, i % 2 * 2 + i / 2);
#endif
                ds[i] = p[i] * dp[m][n][i] - all * (i % 2 ? delta.y : delta.x);
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                a[m][0][2 * n + i] = pack_bf16(p[2 * i], p[2 * i + 1]);
                b[m][0][2 * n + i] = pack_bf16(ds[2 * i], ds[2 * i + 1]);
            }
        }
    }
    add_by_columns(dv, a, dy_rows + lane_down(lane));
    add_by_columns(dk, b, q_rows + lane_down(lane));
}

/* One step of dQ: STEP keys from `key` on, a strip of queries from `query` on. EDGE: some keys are not seen, or not there. */
template <bool EDGE>
DEVICE void step_queries(sums &dq, const left_rows<D / 16> &q, const left_rows<D / 16> &dout, const float (&lse)[M][2],
                         const float (&delta)[M][2], int query, int key, int T, float factor, const drop &d)
{
    int lane = forgotten(threadIdx.x) % WARP;
    u32 k_rows = shared_address(shared_memory) + key * ROW_BYTES;
    scores s, dp;
    kept_scores a;
#if DROPOUT
    drop_bytes bytes = draw<false>(d.seed, d.site, d.step, d.bh, query / 16, key / 16, lane);
#endif
    rows_by_rows(s, q, 0, k_rows + lane_across(lane));
    rows_by_rows(dp, dout, 0, k_rows + AT_SECOND + lane_across(lane));
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
#if DROPOUT
            u32 kept = dropout_kept(bytes.w[m][r], d.less, d.carry);
#endif
#pragma unroll
            for (int n = 0; n < 2; n++) {
                float ds[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int at = key + 8 * n + lane % 4 * 2 + i, row = query + 16 * m + 8 * r + lane / 4;
                    float p = ex2_approx(s[m][n][2 * r + i] * factor - lse[m][r]), g = dp[m][n][2 * r + i];
                    if (EDGE && ((CAUSAL && at > row) || at >= T)) p = 0;
#if DROPOUT
                    g = keep(g, kept, 2 * n + i);
#endif
                    ds[i] = p * (g - delta[m][r]);
                }
                a[m][0][2 * n + r] = pack_bf16(ds[0], ds[1]);
            }
        }
    add_by_columns(dq, a, k_rows + lane_down(lane));
}

/* dK and dV of a head. */
DEVICE void grad_keys(const head &h, const drop &d, float scale, float drop_scale)
{
    int warp = threadIdx.x / WARP, pitch = 3 * h.H * D;
    u32 base = shared_address(shared_memory), at_own = AT_OWN + warp * 2 * OWN_BYTES;
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        int lane = forgotten(threadIdx.x) % WARP, key = (turn ? STRIPS - 1 - warp : warp) * OWN;
        __syncwarp();
        load_own(base + at_own, h.qkv + start(h, 3, 1), pitch, h.qkv + start(h, 3, 2), pitch, key, h.T, lane);
        if (turn == 0)
            for (int i = 0; i < PARTS; i++)
                load_part(h.qkv + start(h, 3, 0), pitch, h.dy + start(h, 1, 0), h.H * D, i, h.T);
        else
            cp_async_wait<0>();
        left_rows<K_KEPT> k;
        left_rows<V_KEPT> v;
        sums dk, dv;
        clear(dk);
        clear(dv);
        u32 own = base + at_own + lane_down(lane);
#pragma unroll 1
        for (int part = 0; part < PARTS; part++) {
            if (turn == 0) {
                wait_for(part);
                statistics<TILE, THREADS>(h, AT_SECOND + part * TILE_BYTES, part * TILE, forgotten(threadIdx.x), d.unscaled);
                __syncthreads();
            }
            if (part == 0) {
                __syncwarp();
                keep_rows(k, own);
                keep_rows(v, own + OWN_BYTES);
            }
            int query = max(part * TILE, CAUSAL ? key : 0), end = min((part + 1) * TILE, h.T);
            if (key >= h.T) continue;
#pragma unroll 1
            for (; query < end; query += STEP)
                if (CAUSAL && query < key + OWN)
                    step_keys<true>(dk, dv, k, v, own, query, key, h.factor, d);
                else
                    step_keys<false>(dk, dv, k, v, own, query, key, h.factor, d);
        }
        if (key >= h.T) continue;
        lane = forgotten(threadIdx.x) % WARP;
        store_own(h.dqkv + start(h, 3, 1), pitch, key, h.T, at_own, dk, scale, lane);
        store_own(h.dqkv + start(h, 3, 2), pitch, key, h.T, at_own + OWN_BYTES, dv, drop_scale, lane);
    }
}

/* dQ of a head. */
DEVICE void grad_queries(const head &h, const drop &d, float scale)
{
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, pitch = 3 * h.H * D;
    u32 base = shared_address(shared_memory), at_own = AT_OWN + warp * 2 * OWN_BYTES;
#pragma unroll 1
    for (int turn = 0; turn < 2; turn++) {
        int query = (turn ? warp : STRIPS - 1 - warp) * OWN;
        __syncwarp();
        load_own(base + at_own, h.qkv + start(h, 3, 0), pitch, h.dy + start(h, 1, 0), h.H * D, query, h.T, lane);
        if (turn == 0) {
            for (int i = 0; i < PARTS; i++)
                load_part(h.qkv + start(h, 3, 1), pitch, h.qkv + start(h, 3, 2), pitch, i, h.T);
            cp_async_wait<PARTS>();
        } else
            cp_async_wait<0>();
        __syncwarp();
        statistics<OWN, WARP>(h, at_own + OWN_BYTES, query, lane, d.unscaled);
        __syncwarp();
        left_rows<D / 16> q, dout;
        sums dq;
        float lse[M][2], delta[M][2]; /* of rows g and g + 8 */
        keep_rows(q, base + at_own + lane_down(lane));
        keep_rows(dout, base + at_own + OWN_BYTES + lane_down(lane));
        clear(dq);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const float *at = (const float *)(shared_memory + AT_LSE) + query + 16 * m + 8 * r + lane / 4;
                lse[m][r] = at[0];
                delta[m][r] = at[ROWS];
            }
#pragma unroll 1
        for (int part = 0; part < PARTS; part++) {
            if (turn == 0) wait_for(part);
            int key = part * TILE, end = min((part + 1) * TILE, CAUSAL ? min(query + OWN, h.T) : h.T);
            if (query >= h.T) continue;
#pragma unroll 1
            for (; key < end; key += STEP)
                if ((CAUSAL && key + STEP > query) || key + STEP > h.T)
                    step_queries<true>(dq, q, dout, lse, delta, query, key, h.T, h.factor, d);
                else
                    step_queries<false>(dq, q, dout, lse, delta, query, key, h.T, h.factor, d);
        }
        if (query < h.T) store_own(h.dqkv + start(h, 3, 0), pitch, query, h.T, at_own, dq, scale, lane);
    }
}

/* Grid 2 BH: `apart` blocks of keys, then as many of queries of the same heads, and so on, so that a multiprocessor has one
 * of either kind. unscaled: 1 / the scale of what dropout keeps. */
KERNEL_MIN(THREADS, BLOCKS)
attention_short_grad(const bf16 *dy, const bf16 *qkv, const bf16 *y, const float *lse, const int *step, bf16 *dqkv,
                     float scale, int T, int H, int BH, int apart, u32 seed, u32 site, u32 less, u32 carry, float drop_scale,
                     float unscaled)
{
    int section = (int)blockIdx.x / (2 * apart), rest = (int)blockIdx.x % (2 * apart);
    int here = min(apart, BH - section * apart), bh = section * apart + rest % here;
    head h = {qkv, dy, y, lse, dqkv, H, T, bh / H, bh % H, scale * LOG2_E};
    drop d = {seed, site, DROPOUT ? (u32)*step : 0, (u32)bh, less, carry, unscaled};
    for (int t = threadIdx.x; t < T; t += THREADS) prefetch_l2(y + start(h, 1, 0) + (i64)t * H * D);
    if (rest < here)
        grad_keys(h, d, scale * drop_scale, drop_scale);
    else
        grad_queries(h, d, scale * drop_scale);
}
