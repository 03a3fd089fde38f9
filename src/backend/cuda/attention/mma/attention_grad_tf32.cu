/* attention_grad_tf32.cu - attention backward in float, rounded to tf32 for mma.sync.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), y (B,T,C), log-sum-exp (B,H,T) -> dqkv like qkv. In kernel `keys`
 * a warp owns rows of keys and walks over the queries; in kernel `queries` a warp owns rows of
 * queries and walks over the keys. Each kernel takes TILE rows at a time. Kernel `keys` walks over
 * the queries of each of the GROUP query heads that share a key head:
 *     keys     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dY^T, dS^T = P^T (dP^T - delta),
 *              dV += P^T dY, dK += dS^T Q
 *     queries  S = Q K^T, P = exp(S - lse), dP = dY V^T, dS = P (dP - delta), dQ += dS K
 * The two kernels have 7 matmuls instead of 5, but no warp waits for another warp's scores, and
 * only tiles are written to shared memory. Each sum has one owner, so every run gives the same
 * bits.
 *
 * An accumulator is a left operand without change if key (or query) 2q is at position q and 2q+1 at
 * position q+4, also in the rows of the right operand. Right operands are read one float at a time,
 * as mma needs them by columns and no instruction transposes floats. Each thread rounds the
 * elements that it copied.
 *
 * Fragments are those of attention_grad.cu (attention_fragments.cuh), but the loops are separate.
 * There all warps of a block sum a tile's dQ and exchange dS through shared memory, ldmatrix
 * transposes right operands, and tiles need no rounding. Here warps share no sums and no dS, no
 * instruction transposes floats, and tiles are rounded.
 *
 * Bound by the bandwidth of shared memory, 128 bytes a clock: at head size 64, for 32 x 16 pairs,
 * 30 KB in `keys` and 17 KB in `queries`, 370 clocks, compared with 220 to 360 of mma. Memory
 * traffic is attention_grad.cu's without the sums of dQ.
 *
 *     HEAD_SIZE, GROUP (query heads per key and value head), WARPS, TILE_ROWS, STAGES (tiles in
 *     shared memory, 1 or 2), CAUSAL, DROPOUT */
#include "mma.cuh"

enum {
    TF32 = 1, D = HEAD_SIZE, CHUNKS = D / 4, /* 16-byte chunks in a row */
    ROW_BYTES = 4 * D, THREADS = WARP * WARPS,
    M = D <= 64 ? 2 : 1, N = D == 64 ? 1 : 2, OWN = 16 * M, /* rows of a warp */
    BLOCK = OWN * WARPS, /* rows of a block */
    STEP = 16 * N,       /* rows of the other side at a time */
    TILE = TILE_ROWS,
    STATS = 2 * TILE,    /* floats of a tile: log-sum-exp times log2 e, then delta */
    /* Shared memory: the block's rows of two matrices; stages of two tiles and statistics. */
    OWN_BYTES = BLOCK * ROW_BYTES, TILE_BYTES = TILE * ROW_BYTES,
    STAGE_BYTES = 2 * TILE_BYTES + STATS * 4,
    AT_STAGES = 2 * OWN_BYTES,
    /* Own rows' columns in registers, in units of 8: as many as registers allow. */
    STEPS = D / 8,
    K_KEPT = D == 128 ? 9 - DROPOUT : D == 96 ? 12 : D == 64 ? 3 : STEPS,
    V_KEPT = D == 128 ? 0 : D == 96 ? 3 : D == 64 ? 0 : STEPS,
    Q_KEPT = STEPS,
    DY_KEPT = D == 128 ? 6 : D == 64 ? 3 : STEPS,
};
static_assert(TILE % STEP == 0 && BLOCK % TILE == 0, "");
static_assert(TILE * CHUNKS % THREADS == 0 && BLOCK * CHUNKS % THREADS == 0, "");

#include "attention_fragments.cuh"
#include "attention_heads.cuh"

/* A lane's row for ldmatrix of a left operand; its float in row 2q + odd, column g of 8 rows. */
DEVICE u32 lane_down(int thread)
{
    return thread / WARP * OWN * ROW_BYTES + swizzle<CHUNKS>(thread % 16, thread / 16 % 2);
}
DEVICE u32 lane_float(int lane, int odd)
{
    return swizzle<CHUNKS>(lane % 4 * 2 + odd, lane / 16) + lane / 4 % 4 * 4;
}
/* Starts copying rows first ... first + ROWS - 1 to a tile; rows from T on become zero. */
template <int ROWS>
DEVICE void load_tile(u32 tile, const float *rows, int pitch, int first, int T, int thread)
{
    UNROLL for (int at = 0; at < ROWS * CHUNKS; at += THREADS) {
        int i = at + thread, row = i / CHUNKS, chunk = i % CHUNKS, t = first + row;
        cp_async_16(shared_address(shared_memory) + tile + swizzle<CHUNKS>(row, chunk),
                    rows + (i64)(t < T ? t : 0) * pitch + chunk * 4, t < T ? 16 : 0);
    }
}
/* Rounds the elements that this thread copied with load_tile. */
template <int ROWS> DEVICE void round_tile(u32 tile, int thread)
{
    UNROLL for (int at = 0; at < ROWS * CHUNKS; at += THREADS) {
        int i = at + thread;
        uint4 *p = (uint4 *)(shared_memory + tile + swizzle<CHUNKS>(i / CHUNKS, i % CHUNKS)),
              a = *p;
        a.x = cvt_rna_tf32(__uint_as_float(a.x)), a.y = cvt_rna_tf32(__uint_as_float(a.y));
        a.z = cvt_rna_tf32(__uint_as_float(a.z)), a.w = cvt_rna_tf32(__uint_as_float(a.w));
        *p = a;
    }
}
DEVICE void load_stats(u32 to, const float *stats)
{
    if (threadIdx.x < STATS / 4)
        cp_async_16(shared_address(shared_memory) + to + threadIdx.x * 16, stats + threadIdx.x * 4,
                    16);
}
DEVICE bool negative(float a)
{
    return __float_as_int(a) < 0;
}
/* sum += a b; b: rows at offset `tile`; a is rounded. NO_NEGATIVES: negative elements of a count as
 * 0. */
template <bool NO_NEGATIVES>
DEVICE void add_by_columns(sums &sum, const scores &a, u32 tile, int lane)
{
    lane = opaque(lane);
    u32 even = tile + lane_float(lane, 0), odd = tile + lane_float(lane, 1);
    UNROLL for (int n = 0; n < 2 * N; n++) {
        u32 left[M][4];
        UNROLL for (int m = 0; m < M; m++)
            UNROLL for (int i = 0; i < 4; i++) {
                float x = a[m][n][i % 2 * 2 + i / 2];
                left[m][i] = NO_NEGATIVES && negative(x) ? 0 : cvt_rna_tf32(x);
            }
        UNROLL for (int c = 0; c < D / 8; c++) {
            u32 b0 = *(const u32 *)(shared_memory + along(even, 2 * c) + n * 8 * ROW_BYTES);
            u32 b1 = *(const u32 *)(shared_memory + along(odd, 2 * c) + n * 8 * ROW_BYTES);
            UNROLL for (int m = 0; m < M; m++) mma_m16n8k8_tf32(sum[m][c], left[m], b0, b1);
        }
    }
}

/* Stores a warp's scaled sums to its rows; a quarter of a warp writes 32 bytes of a row. */
DEVICE void store_sums(float *rows, int pitch, int first, int T, const sums &sum, float scale,
                       int lane)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int h = 0; h < 2; h++) {
            int t = first + 16 * m + 8 * h + lane / 4;
            if (t >= T) continue;
            float *row = rows + (i64)t * pitch + lane % 4 * 2;
            UNROLL for (int n = 0; n < D / 8; n++)
                *(float2 *)(row + 8 * n) =
                    make_float2(sum[m][n][2 * h] * scale, sum[m][n][2 * h + 1] * scale);
        }
}

/* Calls act(m, n, i, whether dropout keeps the element) for the elements of a step. */
template <bool ROWS_ARE_KEYS, typename F>
DEVICE void for_random_bytes(u32 seed, u32 site, u32 step, u32 bh, int query, int key,
                             int threshold, int lane, F act)
{
    enum { COLUMNS = 4 / M }; /* 8-column tiles of scores that one call has bytes for */
    UNROLL for (int first = 0; first < 2 * N; first += COLUMNS) {
        drop_bytes d = random_bytes<ROWS_ARE_KEYS>(
            seed, site, step, bh, query / 16 + (ROWS_ARE_KEYS ? first / 2 : 0),
            key / 16 + (ROWS_ARE_KEYS ? 0 : first / 2), lane);
        UNROLL for (int m = 0; m < M; m++)
            UNROLL for (int n = 0; n < COLUMNS; n++)
                UNROLL for (int i = 0; i < 4; i++)
                    act(m, first + n, i, drop_byte<ROWS_ARE_KEYS>(d, m, n, i) >= threshold);
    }
}

/* stats (B,H,tiles,2,TILE): the log-sum-exp times log2 e, infinite from T on (so P is 0), and delta
 * = rowsum(dy y). One block per tile. Bound by reading y and dy. */
enum { ROW_THREADS = 128 };
KERNEL(ROW_THREADS)
attention_grad_rows(const float *dy, const float *y, const float *lse, float *stats, int T, int H)
{
    enum { LANES = CHUNKS & -CHUNKS, TIMES = CHUNKS / LANES };
    int tiles = ceil_div(T, TILE), bh = blockIdx.x / tiles, tile = blockIdx.x % tiles,
        lane = threadIdx.x % LANES;
    stats += (i64)blockIdx.x * STATS;
    UNROLL for (int row = threadIdx.x / LANES; row < TILE; row += ROW_THREADS / LANES) {
        int t = tile * TILE + row;
        float sum = 0;
        if (t < T) {
            i64 at = (((i64)(bh / H) * T + t) * H + bh % H) * D + lane * 4;
            UNROLL for (int i = 0; i < TIMES; i++) {
                floats<4> a = load<4>(dy + at + i * LANES * 4), c = load<4>(y + at + i * LANES * 4);
                UNROLL for (int k = 0; k < 4; k++) sum += a[k] * c[k];
            }
        }
        UNROLL for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (lane == 0) {
            stats[row] = t < T ? lse[(i64)bh * T + t] * LOG2_E : INFINITY_F;
            stats[TILE + row] = sum;
        }
    }
}

/* A position in the queries of a block: the tiles of a head, from the first tile that sees a key of
 * the block, then the tiles of the next head. */
struct queries {
    int head, tile;
};
DEVICE int first_tile()
{
    return CAUSAL ? blockIdx.y * BLOCK / TILE : 0;
}
DEVICE queries next_of(queries a, int T)
{
    if (++a.tile == ceil_div(T, TILE)) a.head++, a.tile = first_tile();
    return a;
}
/* Starts copying a tile of queries, their dY and statistics. */
DEVICE void load_queries(const float *dy, const float *qkv, const float *stats, int T, int H,
                         queries at, int turn)
{
    int b = at.head / H, h = at.head % H, tiles = ceil_div(T, TILE);
    u32 stage = AT_STAGES + turn % STAGES * STAGE_BYTES;
    load_tile<TILE>(stage, qkv + (i64)b * T * packed_row(H) + h * D, packed_row(H), at.tile * TILE,
                    T, opaque_in_turn(threadIdx.x, turn));
    load_tile<TILE>(stage + TILE_BYTES, dy + ((i64)b * T * H + h) * D, H * D, at.tile * TILE, T,
                    opaque_in_turn(threadIdx.x, turn));
    load_stats(stage + 2 * TILE_BYTES, stats + ((i64)at.head * tiles + at.tile) * STATS);
    cp_async_commit();
}

/* Statistics of queries 8n + 2q, 8n + 2q + 1. */
DEVICE float2 stats_of(u32 stats, int n, int lane)
{
    return *(const float2 *)(shared_memory + stats + (8 * n + lane % 4 * 2) * 4);
}

/* dK and dV. Grid as head_here() expects it: blocks of keys of `heads` heads. */
KERNEL_MIN(THREADS, 8 / WARPS)
attention_grad_keys(const float *dy, const float *qkv, const float *stats, const int *step_number,
                    float *dqkv, float scale, float factor, float keep_scale, int T, int H,
                    int heads, u32 seed, u32 site, int threshold)
{
    int head = head_here(), KV = H / GROUP;
    int turns = GROUP * (ceil_div(T, TILE) - first_tile());
    queries at = {head * GROUP, first_tile()};
    if (head >= heads) return;
    u32 base = shared_address(shared_memory), own = base + lane_down(threadIdx.x);
    i64 batch = (i64)(head / KV) * T * packed_row(H);
    load_tile<BLOCK>(0, qkv + batch + keys_at(H, head % KV), packed_row(H), blockIdx.y * BLOCK, T,
                     threadIdx.x);
    load_tile<BLOCK>(OWN_BYTES, qkv + batch + values_at(H, head % KV), packed_row(H),
                     blockIdx.y * BLOCK, T, threadIdx.x);
    cp_async_commit();
    load_queries(dy, qkv, stats, T, H, at, 0);
    cp_async_wait<1>();
    round_tile<BLOCK>(0, threadIdx.x);
    round_tile<BLOCK>(OWN_BYTES, threadIdx.x);
    __syncthreads();
    left_rows<K_KEPT> k;
    left_rows<V_KEPT> v;
    sums dk, dv;
    keep_rows(k, own);
    keep_rows(v, own + OWN_BYTES);
    clear(dk);
    clear(dv);

#pragma unroll 1
    for (int turn = 0; turn < turns; turn++, at = next_of(at, T)) {
        u32 stage = AT_STAGES + turn % STAGES * STAGE_BYTES;
        cp_async_wait<0>();
        round_tile<TILE>(stage, opaque_in_turn(threadIdx.x, turn));
        round_tile<TILE>(stage + TILE_BYTES, opaque_in_turn(threadIdx.x, turn));
        __syncthreads(); /* this tile has arrived and is rounded, the previous one is read */
        if (STAGES == 2 && turn + 1 < turns)
            load_queries(dy, qkv, stats, T, H, next_of(at, T), turn + 1);
#pragma unroll 1
        for (int step = 0; step < TILE / STEP; step++) {
            int thread = opaque_in_turn(threadIdx.x, turn), lane = thread % WARP;
            int first_key = blockIdx.y * BLOCK + thread / WARP * OWN,
                first_query = at.tile * TILE + step * STEP;
            if (CAUSAL && first_query + STEP <= first_key) continue; /* nothing is seen */
            u32 q_rows = stage + step * STEP * ROW_BYTES, dy_rows = q_rows + TILE_BYTES;
            u32 stats_at = stage + 2 * TILE_BYTES + step * STEP * 4;
            scores s, dp;
            clear(s);
            add_rows_by_rows(s, k, base + lane_down(thread), base + q_rows + lane_across(lane));
            UNROLL for (int n = 0; n < 2 * N; n++) {
                float2 l = stats_of(stats_at, n, lane);
                UNROLL for (int m = 0; m < M; m++)
                    UNROLL for (int i = 0; i < 4; i++)
                        s[m][n][i] = ex2_approx(s[m][n][i] * factor - (i % 2 ? l.y : l.x));
            }
            /* Keys from T on compute rows that are not stored. */
            if (CAUSAL && first_query < first_key + OWN - 1) {
                int beyond = first_key - first_query + lane / 4 - lane % 4 * 2;
                UNROLL for (int m = 0; m < M; m++)
                    UNROLL for (int n = 0; n < 2 * N; n++)
                        UNROLL for (int i = 0; i < 4; i++)
                            if (beyond > 8 * n + i % 2 - 16 * m - i / 2 * 8) s[m][n][i] = 0;
            }
#if DROPOUT
            for_random_bytes<true>(seed, site, (u32)*step_number, at.head, first_query, first_key,
                                   threshold, lane, [&](int m, int n, int i, bool kept) {
                                       if (!kept) s[m][n][i] = -s[m][n][i];
                                   });
#endif
            add_by_columns<DROPOUT>(dv, s, dy_rows, lane);
            /* Never taken. The branch stops loads from moving up, which would take registers. */
            if (opaque(turn) < 0) break;
            thread = opaque_in_turn(threadIdx.x, turn), lane = thread % WARP;
            UNROLL for (int n = 0; n < 2 * N; n++) {
                float2 delta = stats_of(stats_at + TILE * 4, n, lane);
                UNROLL for (int m = 0; m < M; m++)
                    UNROLL for (int i = 0; i < 4; i++)
                        dp[m][n][i] = DROPOUT ? 0 : i % 2 ? -delta.y : -delta.x;
            }
            add_rows_by_rows(dp, v, base + OWN_BYTES + lane_down(thread),
                             base + dy_rows + lane_across(lane));
            UNROLL for (int n = 0; n < 2 * N; n++) {
                float2 delta = DROPOUT ? stats_of(stats_at + TILE * 4, n, lane) : make_float2(0, 0);
                UNROLL for (int m = 0; m < M; m++)
                    UNROLL for (int i = 0; i < 4; i++) {
                        float d = dp[m][n][i];
                        if (DROPOUT)
                            d = (negative(s[m][n][i]) ? 0 : d * keep_scale) -
                                (i % 2 ? delta.y : delta.x);
                        s[m][n][i] = fabsf(s[m][n][i]) * d;
                    }
            }
            add_by_columns<false>(dk, s, q_rows, lane);
        }
        if (STAGES == 1 && turn + 1 < turns) {
            __syncthreads();
            load_queries(dy, qkv, stats, T, H, next_of(at, T), turn + 1);
        }
    }
    head = opaque_in_turn(head_here(), turns);
    int kv = head % KV, first_key = blockIdx.y * BLOCK + threadIdx.x / WARP * OWN;
    dqkv += (i64)(head / KV) * T * packed_row(H);
    store_sums(dqkv + keys_at(H, kv), packed_row(H), first_key, T, dk, scale, threadIdx.x % WARP);
    store_sums(dqkv + values_at(H, kv), packed_row(H), first_key, T, dv, keep_scale,
               threadIdx.x % WARP);
}

/* Starts copying a tile of keys and values for a query head. */
DEVICE void load_keys(const float *qkv, int T, int H, int tile)
{
    int head = opaque_in_turn(head_here(), tile), kv = head % H / GROUP;
    u32 stage = AT_STAGES + tile % STAGES * STAGE_BYTES;
    qkv += (i64)(head / H) * T * packed_row(H);
    load_tile<TILE>(stage, qkv + keys_at(H, kv), packed_row(H), tile * TILE, T,
                    opaque_in_turn(threadIdx.x, tile));
    load_tile<TILE>(stage + TILE_BYTES, qkv + values_at(H, kv), packed_row(H), tile * TILE, T,
                    opaque_in_turn(threadIdx.x, tile));
    cp_async_commit();
}

/* dQ. Grid as head_here() expects it: blocks of queries of `heads` heads. */
KERNEL_MIN(THREADS, 8 / WARPS)
attention_grad_queries(const float *dy, const float *qkv, const float *stats,
                       const int *step_number, float *dqkv, float scale, float factor,
                       float keep_scale, int T, int H, int heads, u32 seed, u32 site, int threshold)
{
    int head = head_here(), block = gridDim.y - 1 - blockIdx.y;
    if (head >= heads) return;
    int first_query = block * BLOCK + threadIdx.x / WARP * OWN;
    int seen = CAUSAL && (block + 1) * BLOCK < T ? (block + 1) * BLOCK : T,
        tiles = ceil_div(seen, TILE);
    u32 base = shared_address(shared_memory), own = base + lane_down(threadIdx.x);
    i64 rows = (i64)(head / H) * T * packed_row(H) + head % H * D;
    load_tile<BLOCK>(0, qkv + rows, packed_row(H), block * BLOCK, T, threadIdx.x);
    load_tile<BLOCK>(OWN_BYTES, dy + ((i64)(head / H) * T * H + head % H) * D, H * D, block * BLOCK,
                     T, threadIdx.x);
    cp_async_commit();
    load_keys(qkv, T, H, 0);
    float lse[M][2], delta[M][2]; /* rows g and g + 8; rows from T on see nothing */
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int i = 0; i < 2; i++) {
            int t = first_query + 16 * m + 8 * i + threadIdx.x % WARP / 4;
            const float *at = stats + ((i64)head * ceil_div(T, TILE) + t / TILE) * STATS;
            lse[m][i] = t < T ? at[t % TILE] : INFINITY_F;
            delta[m][i] = t < T ? at[TILE + t % TILE] : 0;
        }
    cp_async_wait<1>();
    round_tile<BLOCK>(0, threadIdx.x);
    round_tile<BLOCK>(OWN_BYTES, threadIdx.x);
    __syncthreads();
    left_rows<Q_KEPT> q;
    left_rows<DY_KEPT> dy_rows;
    sums dq;
    keep_rows(q, own);
    keep_rows(dy_rows, own + OWN_BYTES);
    clear(dq);

#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        u32 stage = AT_STAGES + tile % STAGES * STAGE_BYTES;
        cp_async_wait<0>();
        round_tile<TILE>(stage, opaque_in_turn(threadIdx.x, tile));
        round_tile<TILE>(stage + TILE_BYTES, opaque_in_turn(threadIdx.x, tile));
        __syncthreads();
        if (STAGES == 2 && tile + 1 < tiles) load_keys(qkv, T, H, tile + 1);
#pragma unroll 1
        for (int step = 0; step < TILE / STEP; step++) {
            int thread = opaque_in_turn(threadIdx.x, tile), lane = thread % WARP;
            int first_query = block * BLOCK + thread / WARP * OWN,
                first_key = tile * TILE + step * STEP;
            if ((CAUSAL && first_key > first_query + OWN - 1) || first_key >= T) break;
            u32 k_rows = stage + step * STEP * ROW_BYTES, left = base + lane_down(thread);
            scores s, dp;
            clear(s);
            add_rows_by_rows(s, q, left, base + k_rows + lane_across(lane));
            UNROLL for (int m = 0; m < M; m++)
                UNROLL for (int n = 0; n < 2 * N; n++)
                    UNROLL for (int i = 0; i < 4; i++) dp[m][n][i] = DROPOUT ? 0 : -delta[m][i / 2];
            add_rows_by_rows(dp, dy_rows, left + OWN_BYTES,
                             base + k_rows + TILE_BYTES + lane_across(lane));
            if ((CAUSAL && first_key + STEP - 1 > first_query) || first_key + STEP > T) {
                UNROLL for (int m = 0; m < M; m++)
                    UNROLL for (int n = 0; n < 2 * N; n++)
                        UNROLL for (int i = 0; i < 4; i++) {
                            int key = first_key + 8 * n + lane % 4 * 2 + i % 2;
                            int query = first_query + 16 * m + i / 2 * 8 + lane / 4;
                            if ((CAUSAL && key > query) || key >= T) s[m][n][i] = -INFINITY_F;
                        }
            }
#if DROPOUT
            for_random_bytes<false>(
                seed, site, (u32)*step_number, opaque_in_turn(head_here(), tile), first_query,
                first_key, threshold, lane, [&](int m, int n, int i, bool kept) {
                    dp[m][n][i] = (kept ? dp[m][n][i] * keep_scale : 0) - delta[m][i / 2];
                });
#endif
            UNROLL for (int m = 0; m < M; m++)
                UNROLL for (int n = 0; n < 2 * N; n++)
                    UNROLL for (int i = 0; i < 4; i++)
                        s[m][n][i] = ex2_approx(s[m][n][i] * factor - lse[m][i / 2]) * dp[m][n][i];
            add_by_columns<false>(dq, s, k_rows, lane);
        }
        if (STAGES == 1 && tile + 1 < tiles) {
            __syncthreads();
            load_keys(qkv, T, H, tile + 1);
        }
    }
    store_sums(dqkv + rows, packed_row(H), first_query, T, dq, scale, threadIdx.x % WARP);
}
