/* attention_hopper_keys.cuh - shared by the sm_90a attention backward kernels in which a warpgroup
 * has 64 keys and walks over tiles of queries. Scores are transposed: rows are keys. */
#pragma once
#include "attention_hopper_grad.cuh"
static_assert(TILE == STATS, "a tile needs one block of statistics");

/* The first tile of queries that sees key `first`. */
DEVICE int first_tile(int first)
{
    return CAUSAL ? first / TILE : 0;
}

struct keys {
    u32 base, k, v; /* shared memory; the warpgroup's rows of K and V in it */
    int round, thread, first, item_tile, first_tile, tiles; /* tiles of queries */
    float factor;
#if DROPOUT
    u32 seed, site, step;
    int threshold, head; /* head: the first query head */
    float drop_scale;
#endif
};

/* Sets scores of queries before the key to -inf. */
DEVICE void mask(scores &s, const keys &own, int tile)
{
    int lane = own.thread % WARP,
        row = own.first + own.thread / WARP * 16 + lane / 4 - tile * TILE - lane % 4 * 2;
    UNROLL for (int i = 0; i < TILE / 2; i++)
        if (i / 4 * 8 + i % 2 < row + i / 2 % 2 * 8) s[i] = -INFINITY_F;
}

#if DROPOUT
/* Marks dropped probabilities by a negative sign, so that no separate mask is needed. */
DEVICE void mark_dropped(scores &p, const keys &own, int member, int tile)
{
    int warp = own.thread / WARP, lane = own.thread % WARP;
    UNROLL for (int j = 0; j < TILE / 32; j++) {
        drop_bytes d = random_bytes<true>(own.seed, own.site, own.step, own.head + member,
                                          tile * TILE / 16 + 2 * j, own.first / 16 + warp, lane);
        UNROLL for (int i = 0; i < 16; i++)
            if (drop_byte<true>(d, 0, i / 4, i % 4) < own.threshold) p[16 * j + i] = -p[16 * j + i];
    }
}
DEVICE bool is_dropped(float p)
{
    return __float_as_int(p) < 0;
}
#endif
/* Packs the probabilities for dV, dropped ones as zeros. */
DEVICE void pack_kept(kept_scores &a, const scores &p)
{
#if DROPOUT
    UNROLL for (int i = 0; i < TILE / 4; i++)
        a[i / 4][i % 4] = pack_bf16(is_dropped(p[2 * i]) ? 0 : p[2 * i],
                                    is_dropped(p[2 * i + 1]) ? 0 : p[2 * i + 1]);
#else
    pack(a, p);
#endif
}

/* probabilities computes P from S; p may be s. gradients computes dS from P and dP, and overwrites
 * P. `stats` points to the statistics of the thread's first column. */
DEVICE void probabilities(scores &p, const scores &s, const keys &own, const float *stats)
{
    UNROLL for (int n = 0; n < TILE / 8; n++) {
        float2 lse = *(const float2 *)(stats + 8 * n);
        UNROLL for (int i = 0; i < 4; i++)
            p[4 * n + i] = ex2_approx(s[4 * n + i] * own.factor - (i % 2 ? lse.y : lse.x));
    }
}
DEVICE void gradients(scores &p, const scores &dp, const keys &own, const float *stats,
                      int from = 0, int to = TILE / 8)
{
    UNROLL for (int n = from; n < to; n++) {
        float2 delta = *(const float2 *)(stats + STATS + 8 * n);
        UNROLL for (int i = 0; i < 4; i++) {
            float d = dp[4 * n + i], less = i % 2 ? delta.y : delta.x;
#if DROPOUT
            d = is_dropped(p[4 * n + i]) ? 0 : d * own.drop_scale;
            p[4 * n + i] = fabsf(p[4 * n + i]) * (d - less);
#else
            p[4 * n + i] *= d - less;
#endif
        }
    }
}
