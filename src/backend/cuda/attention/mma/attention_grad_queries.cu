/* attention_grad_queries.cu - dQ of bf16 attention without atomics: the same bits in every run.
 *
 * A block has BLOCK queries and walks over the keys that they see, TILE at a time. Q and dY stay in
 * registers or, with a head size over 128, in shared memory:
 *     S = Q K^T, P = exp(S - lse), dP = dY V^T, dS = P (dP - delta), dQ += dS K.
 * S and dP are computed here for dQ and again in attention_grad.cu for dK and dV, so there are 7
 * matmuls instead of 5. Bound by tensor cores. Constants: see attention_grad.cuh. */
#include "attention_grad.cuh"

enum {
    DQ_BLOCKS = D > 64 ? 1 : 2, /* blocks on an SM */
    KEPT = D > 128 ? 0 : D / 16, /* columns / 16 of Q and dY in registers: all or none */
    /* Shared memory: Q and dY; two stages of K and V, which overwrite Q and dY if KEPT. */
    STAGE_BYTES = 2 * TILE_BYTES,
    QUERY_BYTES = BLOCK * ROW_BYTES, AT_STAGES = KEPT ? 0 : 2 * QUERY_BYTES,
};

DEVICE void load_keys(const bf16 *qkv, int T, int H, int tile)
{
    int head = head_here(), b = head / H, kv = (head - b * H) / GROUP;
    u32 stage = shared_address(shared_memory) + AT_STAGES + tile % 2 * STAGE_BYTES;
    qkv += (i64)b * T * packed_row(H);
    load_tile<TILE>(stage, qkv + keys_at(H, kv), packed_row(H), tile * TILE, T);
    load_tile<TILE>(stage + TILE_BYTES, qkv + values_at(H, kv), packed_row(H), tile * TILE, T);
    cp_async_commit();
}

/* Grid as head_here() expects it: blocks of queries of `heads` heads. */
KERNEL_MIN(THREADS, DQ_BLOCKS)
attention_grad_queries(const bf16 *dy, const bf16 *qkv, const float *stats, const int *step_number,
                       bf16 *dqkv, float scale, int T, int H, int heads, u32 seed, u32 site,
                       int threshold)
{
    int head = head_here(), block = gridDim.y - 1 - blockIdx.y;
    int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP,
        first_query = block * BLOCK + warp * OWN;
    int seen = CAUSAL && (block + 1) * BLOCK < T ? (block + 1) * BLOCK : T,
        tiles = ceil_div(seen, TILE);
    u32 base = shared_address(shared_memory), own = base + warp * OWN * ROW_BYTES + lane_down(lane);
    float factor = scale * LOG2_E;
#if DROPOUT
    u32 step_now = (u32)*step_number;
    float drop_scale = dropout_scale(threshold);
#endif
    if (head >= heads) return;
    int b = head / H, h = head % H;
    load_tile<BLOCK>(base, qkv + (i64)b * T * packed_row(H) + h * D, packed_row(H), block * BLOCK,
                     T);
    load_tile<BLOCK>(base + QUERY_BYTES, dy + ((i64)b * T * H + h) * D, H * D, block * BLOCK, T);
    cp_async_commit();
    float lse[M][2], delta[M][2]; /* rows g and g + 8; rows from T on see nothing */
    UNROLL for (int m = 0; m < M; m++)
        UNROLL for (int i = 0; i < 2; i++) {
            int t = first_query + 16 * m + 8 * i + lane / 4;
            const float *at = stats + ((i64)head * ceil_div(T, TILE) + t / TILE) * STATS;
            lse[m][i] = t < T ? at[t % TILE] : INFINITY_F;
            delta[m][i] = t < T ? at[TILE + t % TILE] : 0;
        }
    cp_async_wait<0>();
    __syncthreads();
    left_rows<KEPT> q, dy_rows;
    sums dq;
    keep_rows(q, own);
    keep_rows(dy_rows, own + QUERY_BYTES);
    clear(dq);
    __syncthreads();
    load_keys(qkv, T, H, 0);

    for (int tile = 0; tile < tiles; tile++) {
        cp_async_wait<0>();
        __syncthreads();
        if (tile + 1 < tiles) load_keys(qkv, T, H, tile + 1);
#pragma unroll 1
        for (int step = 0; step < TILE / STEP; step++) {
            int first_key = tile * TILE + step * STEP;
            if ((CAUSAL && first_key > first_query + OWN - 1) || first_key >= T) break;
            lane = opaque(threadIdx.x) % WARP;
            u32 k_rows = base + AT_STAGES + tile % 2 * STAGE_BYTES + step * STEP * ROW_BYTES;
            u32 left = base + warp * OWN * ROW_BYTES + lane_down(lane); /* used without KEPT */
            scores s, dp;
            kept_scores a;
            rows_by_rows(s, q, left, k_rows + lane_across(lane));
            rows_by_rows(dp, dy_rows, left + QUERY_BYTES, k_rows + TILE_BYTES + lane_across(lane));
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
            drop_bytes bytes = random_bytes<false>(seed, site, step_now, head_here(),
                                                   first_query / 16, first_key / 16, lane);
            drop_gradients(dp, bytes, threshold, drop_scale);
#endif
            UNROLL for (int m = 0; m < M; m++)
                UNROLL for (int n = 0; n < 2 * N; n++)
                    UNROLL for (int i = 0; i < 4; i++) {
                        float p = ex2_approx(s[m][n][i] * factor - lse[m][i / 2]);
                        s[m][n][i] = p * (dp[m][n][i] - delta[m][i / 2]);
                    }
            pack(a, s);
            add_by_columns(dq, a, k_rows + lane_down(lane));
        }
    }

    __syncthreads();
    head = head_here(), b = head / H, h = head - b * H;
    store_sums(dqkv + (i64)b * T * packed_row(H) + h * D, packed_row(H), first_query, T,
               warp * OWN * ROW_BYTES, dq, scale, lane);
}
