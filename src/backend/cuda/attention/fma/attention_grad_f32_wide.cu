/* attention_grad_f32_wide.cu - attention backward in full float precision, head size over 128.
 *
 * The sums and the two kernels are those of attention_grad_f32.cu; attention_f32_wide.cuh describes
 * the tiles. A block's own rows are queries and dY (for dQ, three matmuls) or keys and values (for
 * dK and dV, four matmuls). Bound by the FMAs: 7 matmuls instead of the 5 of a single kernel, whose
 * sums would need atomics. */
#define LANES_X 8
#include "attention_f32_wide.cuh"
#include "attention_grad_f32.cuh"

/* Grid (H, B, blocks of queries). */
KERNEL_MIN(THREADS, 1)
attention_grad_queries(const float *dy, const float *qkv, const float *lse, const float *delta,
                       const int *step, float *dqkv, float scale, int T, int H, u32 seed, u32 site,
                       int threshold)
{
    float *q = (float *)shared_memory, *dy_rows = q + OWN_FLOATS, *ds = dy_rows + OWN_FLOATS,
          *stages = ds + SCORE_FLOATS;
    int x = lane_x(), y = lane_y(), head = blockIdx.x, bh = blockIdx.y * H + head,
        pitch = (GROUP + 2) * (H / GROUP) * D;
    int first_query = ((int)gridDim.z - 1 - (int)blockIdx.z) * OWN; /* most keys first */
    int seen = CAUSAL ? min(T, first_query + OWN) : T;
    i64 own = (i64)blockIdx.y * T * pitch + head * D;
    const float *keys = qkv + own + (H + head / GROUP - head) * D, *values = keys + H / GROUP * D;
    constexpr int TILE_SLICES = 2 * PARTS + ROW_PARTS; /* slices of a tile: keys, values, keys */
    int slices = ceil_div(seen, TILE) * TILE_SLICES;
    auto copy = [&](int i) {
        int tile = i / TILE_SLICES * TILE, part = i % TILE_SLICES;
        float *stage = stages + i % STAGES * STAGE_FLOATS;
        if (i < slices && part < 2 * PARTS)
            copy_columns(stage, part < PARTS ? keys : values, pitch, tile, T, part % PARTS);
        if (i < slices && part >= 2 * PARTS)
            copy_rows(stage, keys, pitch, tile, T, part - 2 * PARTS);
        cp_async_commit();
    };
    copy_own(q, qkv + own, pitch, first_query, T);
    copy_own(dy_rows, dy + ((i64)blockIdx.y * T * H + head) * D, H * D, first_query, T);
    copy(0);
    copy(1);
    sums sum;
    clear(sum);
    float row_lse[R], row_delta[R];
    UNROLL for (int i = 0; i < R; i++) {
        int t = first_query + y + 16 * i;
        row_lse[i] = t < T ? lse[(i64)bh * T + t] : 0;
        row_delta[i] = t < T ? delta[(i64)bh * T + t] : 0;
    }
    int at = 0;
#pragma unroll 1
    for (int first_key = 0; first_key < seen; first_key += TILE) {
        scores s, dp;
        clear(s);
        clear(dp);
#pragma unroll 1
        for (int part = 0; part < PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_scores<2>(s, q, stages + at % STAGES * STAGE_FLOATS, part);
        }
#pragma unroll 1
        for (int part = 0; part < PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_scores<2>(dp, dy_rows, stages + at % STAGES * STAGE_FLOATS, part);
        }
        UNROLL for (int i = 0; i < R; i++)
            UNROLL for (int j = 0; j < OTHER_ROWS; j++) {
                int query = first_query + y + 16 * i, key = first_key + x + 16 * j;
                float keep = DROPOUT ? keep_scale(seed, site, *step, bh, query, key, threshold) : 1;
                gradient(s[i][j], dp[i][j], row_lse[i], row_delta[i], scale, keep,
                         query < T && key < T && (!CAUSAL || key <= query));
            }
        put_scores(ds, s);
#pragma unroll 1
        for (int part = 0; part < ROW_PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_sums<4>(sum, ds, stages + at % STAGES * STAGE_FLOATS, part);
        }
    }
    UNROLL for (int i = 0; i < R; i++) {
        int t = first_query + y + 16 * i;
        if (t < T) store_row(dqkv + own + (i64)t * pitch, sum, i, scale);
    }
}

/* Grid (KV, B, blocks of keys); the first blocks of keys have the most queries. */
KERNEL_MIN(THREADS, 1)
attention_grad_keys(const float *dy, const float *qkv, const float *lse, const float *delta,
                    const int *step, float *dqkv, float scale, int T, int H, u32 seed, u32 site,
                    int threshold)
{
    float *k = (float *)shared_memory, *v = k + OWN_FLOATS, *p = v + OWN_FLOATS,
          *ds = p + SCORE_FLOATS, *stages = ds + SCORE_FLOATS;
    int x = lane_x(), y = lane_y(), kv = blockIdx.x, pitch = (GROUP + 2) * (H / GROUP) * D;
    int first_key = blockIdx.z * OWN, first_tile = CAUSAL ? first_key : 0;
    i64 batch = (i64)blockIdx.y * T * pitch, keys = batch + (H + kv) * D,
        values = keys + H / GROUP * D;
    const float *queries = qkv + batch, *grads = dy + (i64)blockIdx.y * T * H * D;
    /* Slices of a tile: queries, dY, dY, queries; tiles of each query head of the group in turn. */
    constexpr int TILE_SLICES = 2 * PARTS + 2 * ROW_PARTS;
    int tiles = ceil_div(T - first_tile, TILE), slices = GROUP * tiles * TILE_SLICES;
    auto copy = [&](int i) {
        int tile = i / TILE_SLICES, part = i % TILE_SLICES, head = kv * GROUP + tile / tiles,
            first = first_tile + tile % tiles * TILE;
        bool of_grads = part >= PARTS && part < 2 * PARTS + ROW_PARTS;
        const float *from = (of_grads ? grads : queries) + head * D;
        i64 apart = of_grads ? H * D : pitch;
        float *stage = stages + i % STAGES * STAGE_FLOATS;
        if (i < slices && part < 2 * PARTS)
            copy_columns(stage, from, apart, first, T, part % PARTS);
        if (i < slices && part >= 2 * PARTS)
            copy_rows(stage, from, apart, first, T, (part - 2 * PARTS) % ROW_PARTS);
        cp_async_commit();
    };
    copy_own(k, qkv + keys, pitch, first_key, T);
    copy_own(v, qkv + values, pitch, first_key, T);
    copy(0);
    copy(1);
    sums dk, dv;
    clear(dk);
    clear(dv);
    int at = 0;
#pragma unroll 1
    for (int tile = 0; tile < GROUP * tiles; tile++) {
        int first_query = first_tile + tile % tiles * TILE,
            bh = blockIdx.y * H + kv * GROUP + tile / tiles;
        scores s, dp;
        clear(s);
        clear(dp);
#pragma unroll 1
        for (int part = 0; part < PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_scores<1>(s, k, stages + at % STAGES * STAGE_FLOATS, part);
        }
        float row_lse[OTHER_ROWS], row_delta[OTHER_ROWS];
        UNROLL for (int j = 0; j < OTHER_ROWS; j++) {
            int t = min(first_query + x + 16 * j, T - 1);
            row_lse[j] = lse[(i64)bh * T + t];
            row_delta[j] = delta[(i64)bh * T + t];
        }
#pragma unroll 1
        for (int part = 0; part < PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_scores<1>(dp, v, stages + at % STAGES * STAGE_FLOATS, part);
        }
        UNROLL for (int i = 0; i < R; i++)
            UNROLL for (int j = 0; j < OTHER_ROWS; j++) {
                int query = first_query + x + 16 * j, key = first_key + y + 16 * i;
                float keep = DROPOUT ? keep_scale(seed, site, *step, bh, query, key, threshold) : 1;
                gradient(s[i][j], dp[i][j], row_lse[j], row_delta[j], scale, keep,
                         query < T && key < T && (!CAUSAL || key <= query));
            }
        put_scores(p, dp);
        put_scores(ds, s);
#pragma unroll 1
        for (int part = 0; part < ROW_PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_sums<2>(dv, p, stages + at % STAGES * STAGE_FLOATS, part);
        }
#pragma unroll 1
        for (int part = 0; part < ROW_PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_sums<2>(dk, ds, stages + at % STAGES * STAGE_FLOATS, part);
        }
    }
    UNROLL for (int i = 0; i < R; i++) {
        int t = first_key + y + 16 * i;
        if (t >= T) continue;
        store_row(dqkv + keys + (i64)t * pitch, dk, i, scale);
        store_row(dqkv + values + (i64)t * pitch, dv, i, 1);
    }
}
