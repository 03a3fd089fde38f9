/* attention_grad.cu - attention backward, bf16, mma.sync: dv, dk and optionally dq.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), y (B,T,C), log-sum-exp (B,H,T) -> dqkv like qkv; FlashAttention-2
 * (Dao, arXiv 2307.08691, algorithm 2). A block has BLOCK keys of one of KV heads and walks over
 * the queries that see them, TILE at a time, for each of the GROUP query heads in turn. K and V (or
 * most of them) and the sums dK and dV are in registers. A warp's rows are keys:
 *     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dY^T, dS^T = P^T (dP^T - delta),
 *     dV += P^T dY, dK += dS^T Q,
 * so P and dS in registers are left operands without change. Only dS goes through shared memory,
 * for dQ = dS K, whose rows all warps share. dS has two buffers, so that a tile's dQ is computed
 * concurrently with the next tile and one barrier a tile is enough.
 *
 * DQ_SUMS: blocks of keys add dQ to float sums in memory, in the order of registers (a permutation
 * that only attention_grad_convert knows). The order of blocks is undefined, so the bits differ
 * from run to run. Without DQ_SUMS attention_grad_queries.cu computes dQ. PARTS:
 * attention_heads.cuh.
 *
 * Bound by tensor cores, then by the bandwidth of shared memory (at head size 64: 480 KB for 128 x
 * 128 pairs, 3800 clocks, compared with 4100 to 5100 of mma). */
#include "attention_grad.cuh"

/* The warps divide a tile of dQ into DQ_ROWS by DQ_COLUMNS parts, in PASSES. */
enum {
    DQ_ROWS = D == 16 || D == 96 ? 4 : 2,
    DQ_COLUMNS = WARPS / DQ_ROWS, DQ_M = TILE / DQ_ROWS / 16,
    DQ_N = D == 96 ? 3 : D >= 64 ? 2 : 1, /* of 16 columns */
    UNROLLED = BLOCK / 16 > 4 ? 4 : BLOCK / 16, /* of dQ's sum over keys; more take registers */
    PASSES = D / (16 * DQ_N * DQ_COLUMNS),
    DQ_FLOATS = DQ_M * DQ_N * 8, /* of a thread in a pass */
    DS_CHUNKS = TILE / 8,
    /* Columns / 16 of K and V in registers, as many as fit. TIGHT: other values need some of the
     * registers. */
    TIGHT = GROUP > 1 || !DQ_SUMS,
    K_KEPT = D > 128    ? 0
             : D == 128 ? 6 - DROPOUT - (GROUP > 1) - (DROPOUT && !DQ_SUMS)
             : D == 64  ? (DROPOUT ? 3 - TIGHT : 4 - (GROUP > 1))
                        : D / 16,
    V_KEPT = D > 128    ? 0
             : D == 128 ? (DROPOUT ? 1 : TIGHT ? 3 : 5)
             : D == 96  ? 6 - 2 * DROPOUT
             : D == 64  ? (DROPOUT || TIGHT ? 2 : 3)
                        : D / 16,
    /* A branch that is never taken stops loads from moving above it, which would take registers. */
    LOAD_BARRIER = D >= 64 && TIGHT && !DROPOUT,
    /* Shared memory: K, V, two stages of Q, dY and statistics, two buffers of dS. */
    KEY_BYTES = ROW_BYTES * BLOCK, STAGE_BYTES = 2 * TILE_BYTES + STATS * 4,
    DS_BYTES = 2 * TILE * BLOCK, AT_VALUES = KEY_BYTES,
    AT_STAGES = 2 * KEY_BYTES, AT_DS = AT_STAGES + 2 * STAGE_BYTES,
};
static_assert(!DQ_SUMS || PASSES * 16 * DQ_N * DQ_COLUMNS == D, "the warps do not divide dq");
static_assert(!DQ_SUMS || PARTS == DKV, "one launch adds dq");

/* stats (B,H,tiles,2,TILE): the log-sum-exp times log2 e, infinite from T on (so P is 0), and delta
 * = rowsum(dy y). DQ_SUMS: clears dq. Grid (tiles, H, B). */
enum { ROW_THREADS = 256 };
KERNEL(ROW_THREADS)
attention_grad_rows(const bf16 *dy, const bf16 *y, const float *lse, float *stats, float *dq, int T,
                    int H)
{
    enum { LANES = CHUNKS & -CHUNKS, TIMES = CHUNKS / LANES };
    int tile = blockIdx.x, h = blockIdx.y, b = blockIdx.z, bh = b * H + h,
        lane = threadIdx.x % LANES;
    i64 tile_at = (i64)bh * gridDim.x + tile;
    stats += tile_at * STATS;
    for (int row = threadIdx.x / LANES; row < TILE; row += ROW_THREADS / LANES) {
        int t = tile * TILE + row;
        float sum = 0;
        if (t < T) {
            i64 at = (((i64)b * T + t) * H + h) * D + lane * 8;
            UNROLL for (int i = 0; i < TIMES; i++) {
                floats<8> a = load<8>(dy + at + i * LANES * 8), c = load<8>(y + at + i * LANES * 8);
                UNROLL for (int k = 0; k < 8; k++) sum += a[k] * c[k];
            }
        }
        UNROLL for (int d = LANES / 2; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
        if (lane == 0) {
            stats[row] = t < T ? lse[(i64)bh * T + t] * LOG2_E : INFINITY_F;
            stats[TILE + row] = sum;
        }
    }
#if DQ_SUMS
    float4 *clear = (float4 *)(dq + tile_at * TILE * D);
    for (int i = threadIdx.x; i < TILE * D / 4; i += ROW_THREADS)
        clear[i] = make_float4(0, 0, 0, 0);
#endif
}

#if DQ_SUMS
/* Address of a thread's floats of a pass in a tile of dq's sums; adjacent threads are adjacent. */
DEVICE float *dq_at(float *tile, int pass, int i)
{
#if RED_VECTOR
    return tile + ((pass * DQ_FLOATS + i) / 4 * THREADS + threadIdx.x) * 4;
#else
    return tile + (pass * DQ_FLOATS + i) * THREADS + threadIdx.x;
#endif
}

/* Adds dS K of a tile; dS is stored as (keys, queries). */
DEVICE void add_dq(float *tile, u32 ds, u32 keys, int thread)
{
    int lane = thread % WARP, rows = thread / WARP / DQ_COLUMNS,
        columns = thread / WARP % DQ_COLUMNS;
    u32 left = ds + swizzle<DS_CHUNKS>(lane / 16 * 8 + lane % 8, rows * DQ_M * 2 + lane / 8 % 2);
    UNROLL for (int pass = 0; pass < PASSES; pass++) {
        u32 right[DQ_N];
        float sum[DQ_M][2 * DQ_N][4];
        UNROLL for (int n = 0; n < DQ_N; n++)
            right[n] =
                keys + swizzle<CHUNKS>(lane % 16,
                                       ((pass * DQ_COLUMNS + columns) * DQ_N + n) * 2 + lane / 16);
        UNROLL for (int m = 0; m < DQ_M; m++)
            UNROLL for (int n = 0; n < 2 * DQ_N; n++)
                UNROLL for (int i = 0; i < 4; i++) sum[m][n][i] = 0;
#pragma unroll UNROLLED
        for (int k = 0; k < BLOCK / 16; k++) {
            u32 a[DQ_M][4], b[DQ_N][4];
            UNROLL for (int m = 0; m < DQ_M; m++)
                ldmatrix_x4_trans(a[m], (left ^ 32u * m) + k * 16 * 2 * TILE);
            UNROLL for (int n = 0; n < DQ_N; n++)
                ldmatrix_x4_trans(b[n], right[n] + k * 16 * ROW_BYTES);
            UNROLL for (int m = 0; m < DQ_M; m++)
                UNROLL for (int n = 0; n < DQ_N; n++) {
                    mma_m16n8k16(sum[m][2 * n], a[m], b[n][0], b[n][1]);
                    mma_m16n8k16(sum[m][2 * n + 1], a[m], b[n][2], b[n][3]);
                }
        }
        UNROLL for (int m = 0; m < DQ_M; m++)
            UNROLL for (int n = 0; n < 2 * DQ_N; n++) {
                int i = (m * 2 * DQ_N + n) * 4;
#if RED_VECTOR
                red_add_x4(dq_at(tile, pass, i), sum[m][n]);
#else
                UNROLL for (int k = 0; k < 4; k++) red_add(dq_at(tile, pass, i + k), sum[m][n][k]);
#endif
            }
    }
}

/* Stores dq's scaled sums to the packed gradient; grid (tiles, H, B). Bound by reading the sums. */
KERNEL(THREADS) attention_grad_convert(float *dq, bf16 *dqkv, float scale, int T, int H)
{
    __shared__ __align__(16) u8 rounded[TILE_BYTES];
    int tile = blockIdx.x, h = blockIdx.y, b = blockIdx.z, KV = kv_heads(H);
    int warp = threadIdx.x / WARP, g = threadIdx.x % WARP / 4, q = threadIdx.x % 4;
    int first_row = warp / DQ_COLUMNS * DQ_M * 16, columns = warp % DQ_COLUMNS;
    dq += ((i64)(b * H + h) * gridDim.x + tile) * TILE * D;
    UNROLL for (int pass = 0; pass < PASSES; pass++)
        UNROLL for (int m = 0; m < DQ_M; m++)
            UNROLL for (int n = 0; n < 2 * DQ_N; n++) {
                int i = (m * 2 * DQ_N + n) * 4,
                    chunk = (pass * DQ_COLUMNS + columns) * DQ_N * 2 + n;
                floats<4> a;
#if RED_VECTOR
                a = load<4>(dq_at(dq, pass, i));
#else
                UNROLL for (int k = 0; k < 4; k++) a[k] = *dq_at(dq, pass, i + k);
#endif
                UNROLL for (int half = 0; half < 2; half++)
                    *(u32 *)(rounded + swizzle<CHUNKS>(first_row + 16 * m + 8 * half + g, chunk) +
                             4 * q) = pack_bf16(a[2 * half] * scale, a[2 * half + 1] * scale);
            }
    __syncthreads();
    UNROLL for (int i = threadIdx.x; i < TILE * CHUNKS; i += THREADS) {
        int row = i / CHUNKS, chunk = i % CHUNKS, t = tile * TILE + row;
        if (t < T)
            *(uint4 *)(dqkv + (((i64)b * T + t) * (GROUP + 2) * KV + h) * D + chunk * 8) =
                *(const uint4 *)(rounded + swizzle<CHUNKS>(row, chunk));
    }
}
#endif

/* Stores a warp's dS^T of a step to its rows of the buffer. */
DEVICE void store_ds(u32 rows, const kept_scores &a, int step, int lane)
{
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int n = 0; n < N; n++)
            UNROLL for (int i = 0; i < 4; i++)
                *(u32 *)(shared_memory + rows + 4 * (lane % 4) +
                         swizzle<DS_CHUNKS>(16 * m + i % 2 * 8 + lane / 4,
                                            (step * N + n) * 2 + i / 2)) = a[m][n][i];
}

/* The first tile of queries that sees a key of the block. */
DEVICE int first_tile()
{
    return CAUSAL ? blockIdx.y * BLOCK / TILE : 0;
}
/* Query head `member` of the group that shares the block's keys. */
DEVICE int head_of(int member)
{
    return head_here() * GROUP + member;
}

/* Starts copying a tile of queries, their dY and statistics. */
DEVICE void load_queries(const bf16 *dy, const bf16 *qkv, const float *stats, int T, int H,
                         int member, int tile)
{
    int head = head_of(member), b = head / opaque_in_turn(H, tile), h = head - b * H,
        tiles = ceil_div(T, TILE);
    u32 stage = shared_address(shared_memory) + AT_STAGES + tile % 2 * STAGE_BYTES;
    load_tile<TILE>(stage, qkv + (i64)b * T * packed_row(H) + h * D, packed_row(H), tile * TILE, T);
    load_tile<TILE>(stage + TILE_BYTES, dy + ((i64)b * T * H + h) * D, H * D, tile * TILE, T);
    load_stats(stage + 2 * TILE_BYTES, stats + ((i64)head * tiles + tile) * STATS);
    cp_async_commit();
}

/* dK, dV and optionally dQ. Grid as head_here() expects it: blocks of keys of `heads` heads. */
KERNEL_MIN(THREADS, 8 / WARPS)
attention_grad_keys(const bf16 *dy, const bf16 *qkv, const float *stats, const int *step_number,
                    float *dq, bf16 *dqkv, float scale, int T, int H, int heads, u32 seed, u32 site,
                    int threshold)
{
    u32 base = shared_address(shared_memory);
    int tile = first_tile(), tiles = ceil_div(T, TILE);
    float factor = scale * LOG2_E;
#if DROPOUT
    u32 step_now = (u32)*step_number;
    float drop_scale = dropout_scale(threshold);
#else
    float drop_scale = 1;
#endif
    int head = head_here(), b = head / kv_heads(H), kv = head % kv_heads(H);
    if (head >= heads) return;
    i64 batch = (i64)b * T * packed_row(H);
    load_tile<BLOCK>(base, qkv + batch + keys_at(H, kv), packed_row(H), blockIdx.y * BLOCK, T);
    if (PARTS != DV)
        load_tile<BLOCK>(base + AT_VALUES, qkv + batch + values_at(H, kv), packed_row(H),
                     blockIdx.y * BLOCK, T);
    cp_async_commit();
    load_queries(dy, qkv, stats, T, H, 0, tile);
    cp_async_wait<1>();
    __syncthreads();
    left_rows<K_KEPT> k;
    left_rows<V_KEPT> v;
    sums dk, dv;
    /* The warp's own rows of K; its rows of V are AT_VALUES further. */
    u32 own = base + threadIdx.x / WARP * OWN * ROW_BYTES + lane_down(threadIdx.x % WARP);
    keep_rows(k, own);
    keep_rows(v, own + AT_VALUES);
    clear(dk);
    clear(dv);

#pragma unroll 1
    for (int member = 0; member < GROUP; member++) {
        if (member) tile = first_tile();
        for (bool before = false;; before = true, tile++) {
            cp_async_wait<0>();
            /* This tile and the last dS are complete; the previous stage and older dS are free. */
            __syncthreads();
            if (tile + 1 < tiles) load_queries(dy, qkv, stats, T, H, member, tile + 1);
            if (tile == tiles && member + 1 < GROUP)
                load_queries(dy, qkv, stats, T, H, member + 1, first_tile());
#if DQ_SUMS
            if (before)
                add_dq(dq + ((i64)head_of(member) * tiles + tile - 1) * TILE * D,
                       base + AT_DS + (tile + 1) % 2 * DS_BYTES, base, opaque(threadIdx.x));
#endif
            if (tile == tiles) break;
#pragma unroll 1
            for (int step = 0; step < TILE / STEP; step++) {
                int thread = opaque(threadIdx.x), lane = thread % WARP, first = thread / WARP * OWN;
                int first_key = blockIdx.y * BLOCK + first, first_query = tile * TILE + step * STEP;
                u32 ds_rows = AT_DS + tile % 2 * DS_BYTES + first * 2 * TILE;
                kept_scores a;
                if (CAUSAL && first_query + STEP <= first_key) { /* nothing is seen */
                    UNROLL for (int i = 0; i < M * N * 4; i++) a[i / 4 / N][i / 4 % N][i % 4] = 0;
                    if (DQ_SUMS) store_ds(ds_rows, a, step, lane);
                    continue;
                }
                u32 stage = AT_STAGES + tile % 2 * STAGE_BYTES,
                    q_rows = base + stage + step * STEP * ROW_BYTES;
                u32 dy_rows = q_rows + TILE_BYTES,
                    k_rows = base + first * ROW_BYTES + lane_down(lane);
                const float *lse = (const float *)(shared_memory + stage + 2 * TILE_BYTES) +
                                   step * STEP + lane % 4 * 2;
                scores s, dp;
                rows_by_rows(s, k, k_rows, q_rows + lane_across(lane));
                UNROLL for (int n = 0; n < 2 * N; n++) {
                    float2 l = *(const float2 *)(lse + 8 * n);
                    UNROLL for (int m = 0; m < M; m++)
                        UNROLL for (int i = 0; i < 4; i++)
                            s[m][n][i] = ex2_approx(s[m][n][i] * factor - (i % 2 ? l.y : l.x));
                }
                if ((CAUSAL && first_query < first_key + OWN - 1) || first_key + OWN > T) {
                    UNROLL for (int m = 0; m < M; m++)
                        UNROLL for (int n = 0; n < 2 * N; n++)
                            UNROLL for (int i = 0; i < 4; i++) {
                                int key = first_key + 16 * m + i / 2 * 8 + lane / 4;
                                int query = first_query + 8 * n + lane % 4 * 2 + i % 2;
                                if ((CAUSAL && key > query) || key >= T) s[m][n][i] = 0;
                            }
                }
#if DROPOUT
                mark_dropped(s,
                             random_bytes<true>(seed, site, step_now, head_of(member),
                                                first_query / 16, first_key / 16, lane),
                             threshold);
                pack_kept(a, s);
#else
                pack(a, s);
#endif
                if (PARTS != DK) add_by_columns(dv, a, dy_rows + lane_down(lane));
                if (PARTS == DV) continue;
                if (LOAD_BARRIER && opaque(tile) < 0) break;
                rows_by_rows(dp, v, k_rows + AT_VALUES, dy_rows + lane_across(lane));
                UNROLL for (int n = 0; n < 2 * N; n++) {
                    float2 delta = *(const float2 *)(lse + TILE + 8 * n);
                    UNROLL for (int m = 0; m < M; m++)
                        UNROLL for (int i = 0; i < 4; i++) {
                            float d = !DROPOUT                 ? dp[m][n][i]
                                      : is_dropped(s[m][n][i]) ? 0
                                                               : dp[m][n][i] * drop_scale;
                            s[m][n][i] = fabsf(s[m][n][i]) * (d - (i % 2 ? delta.y : delta.x));
                        }
                }
                pack(a, s);
                if (DQ_SUMS) store_ds(ds_rows, a, step, lane);
                add_by_columns(dk, a, q_rows + lane_down(lane));
            }
        }
    }

    __syncthreads();
    int thread = opaque(threadIdx.x), first = thread / WARP * OWN;
    head = head_here(), b = head / kv_heads(H), kv = head % kv_heads(H);
    dqkv += (i64)b * T * packed_row(H);
    if (PARTS != DV)
        store_sums(dqkv + keys_at(H, kv), packed_row(H), blockIdx.y * BLOCK + first, T,
                   first * ROW_BYTES, dk, scale, thread % WARP);
    if (PARTS == DK) return;
    store_sums(dqkv + values_at(H, kv), packed_row(H), blockIdx.y * BLOCK + first, T,
               first * ROW_BYTES, dv, drop_scale, thread % WARP);
}
