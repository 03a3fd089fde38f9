/* Attention over packed float q, k, v, for a head size over 128, with the blocks, inputs and
 * results of attention_f32.cu. Bound by the FMAs, 2 HEAD_SIZE for each row and key; tiles:
 * attention_f32_wide.cuh. The 16 lanes that share own rows are in one warp, so shuffles reduce. */
#define LANES_X 16
#define HEAD_SIZE HEAD
#include "attention_f32_wide.cuh"

/* Reductions over the 16 lanes that share rows. */
DEVICE float half_max(float a)
{
    UNROLL for (int d = 16; d > 1; d /= 2) a = fmaxf(a, __shfl_xor_sync(~0u, a, d));
    return a;
}
DEVICE float half_sum(float a)
{
    UNROLL for (int d = 16; d > 1; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}

KERNEL_MIN(THREADS, 1)
attention_forward(const float *qkv, const int *step, float *y, float *lse, int T, int H, int BH,
                  int heads_at_once, float scale, u32 seed, u32 site, int threshold,
                  float keep_scale)
{
    float *q = (float *)shared_memory, *p = q + OWN_FLOATS, *stages = p + SCORE_FLOATS;
    int row_blocks = ceil_div(T, OWN);
    int section = (int)blockIdx.x / (heads_at_once * row_blocks),
        rest = (int)blockIdx.x % (heads_at_once * row_blocks);
    int heads_here = min(heads_at_once, BH - section * heads_at_once);
    int bh = section * heads_at_once + rest % heads_here,
        row = (row_blocks - 1 - rest / heads_here) * OWN;
    int C = H / GROUP * D, stride = (GROUP + 2) * C; /* columns of all keys, of a row of qkv */
    int n = CAUSAL ? min(T, row + OWN) : T;          /* keys that the block sees */
    const float *head = qkv + (i64)(bh / H) * T * stride + bh % H * D;
    const float *keys = head + GROUP * C - (bh % H - bh % H / GROUP) * D, *values = keys + C;
    float top[R], sum[R];
    sums o;
    scores s;
    clear(o);
    clear(s);
    /* `top` begins above -inf, because all scores of a row in the first tile may be -inf. */
    UNROLL for (int i = 0; i < R; i++) {
        top[i] = 0.5f * LOWEST_F; /* finite also times LOG2_E */
        sum[i] = 0;
    }

    constexpr int TILE_SLICES = PARTS + ROW_PARTS; /* slices of a tile: keys, then values */
    int slices = ceil_div(n, TILE) * TILE_SLICES;
    auto copy = [&](int i) {
        int tile = i / TILE_SLICES * TILE, part = i % TILE_SLICES;
        float *stage = stages + i % STAGES * STAGE_FLOATS;
        if (i < slices && part < PARTS) copy_columns(stage, keys, stride, tile, T, part);
        if (i < slices && part >= PARTS) copy_rows(stage, values, stride, tile, T, part - PARTS);
        cp_async_commit();
    };
    copy_own(q, head, stride, row, T);
    copy(0);
    copy(1);
    int at = 0;
#pragma unroll 1
    for (int key = 0; key < n; key += TILE) {
#pragma unroll 1
        for (int part = 0; part < PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_scores<1>(s, q, stages + at % STAGES * STAGE_FLOATS, part);
        }
        UNROLL for (int i = 0; i < R; i++) {
            int query = row + lane_y() + 16 * i;
            int seen = (CAUSAL ? min(query + 1, T) : T) - key - lane_x();
            float max = -INFINITY_F;
            UNROLL for (int j = 0; j < OTHER_ROWS; j++) {
                if (16 * j >= seen) s[i][j] = -INFINITY_F;
                max = fmaxf(max, s[i][j]);
            }
            max = fmaxf(top[i], half_max(max));
            float factor = ex2_approx((top[i] - max) * scale), less = max * scale;
            top[i] = max;
            sum[i] *= factor;
            UNROLL for (int j = 0; j < OTHER_ROWS; j++) {
                s[i][j] = ex2_approx(s[i][j] * scale - less);
                sum[i] += s[i][j];
                if (DROPOUT && !keeps_score(seed, site, (u32)*step, (u32)bh, (u32)query,
                                            (u32)(key + lane_x() + 16 * j), threshold))
                    s[i][j] = 0;
            }
            UNROLL for (int c = 0; c < PARTS; c++)
                UNROLL for (int k = 0; k < 4; k++) o[i][c][k] *= factor;
        }
        put_scores(p, s);
        clear(s);
#pragma unroll 1
        for (int part = 0; part < ROW_PARTS; part++, at++) {
            next_slice();
            copy(at + 2);
            add_sums<2>(o, p, stages + at % STAGES * STAGE_FLOATS, part);
        }
    }
    UNROLL for (int i = 0; i < R; i++) {
        int t = row + lane_y() + 16 * i;
        float all = half_sum(sum[i]), by = keep_scale / all;
        if (t >= T) continue;
        store_row(y + ((i64)(bh / H) * T + t) * (GROUP * C) + bh % H * D, o, i, by);
        if (lane_x() == 0) lse[(i64)bh * T + t] = (top[i] * scale + lg2_approx(all)) * LN_2;
    }
}
