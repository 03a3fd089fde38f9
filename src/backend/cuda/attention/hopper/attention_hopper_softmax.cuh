/* attention_hopper_softmax.cuh - register operations on a tile's scores in attention_hopper.cu:
 * mask, maxima, exponentials and their sums, dropout, bf16 weights. E: a thread's elements. */
#pragma once
#include "attention_random.cuh"

/* LIMIT: the largest allowed sum of a row if `top` is fixed. Where `top` is not fixed, it is raised
 * if terms exceed 2^LAG. */
#define LIMIT 18446744073709551616.0f
#define LAG 8.0f

/* A thread's part of its warpgroup's rows, as fragments; [h]: row g + 8h of its warp's 16. */
struct rows {
    float o[HEAD / 2];
    u32 p[KEYS / 16][4];
    float top[2], sum[2], factor[2];
    bool lifted;
    int first; /* row g of the warp */
};

/* Sets unseen scores to -inf; `first` is the tile's first key. All rows see the first FROM keys. */
template <int FROM, int E> DEVICE void mask_scores(float (&s)[E], const rows &r, int first, int T)
{
    int column = first + threadIdx.x % 4 * 2;
    UNROLL for (int h = 0; h < 2; h++) {
        int seen = (CAUSAL ? r.first + 8 * h + 1 : T) - column;
        UNROLL for (int n = FROM / 8; n < E / 4; n++)
            UNROLL for (int i = 0; i < 2; i++)
                if (8 * n + i >= seen) s[4 * n + 2 * h + i] = -INFINITY_F;
    }
}

/* If the maximum of any row exceeds `top` by too much, raises `top` of all rows of the warp and
 * rescales the sums; lift_output then rescales the output. */
template <bool FIRST, int E> DEVICE void lift_top(rows &r, const float (&s)[E], float scale)
{
    float max[2];
    bool far = false;
    UNROLL for (int h = 0; h < 2; h++) {
        float a = fmaxf(s[2 * h], s[2 * h + 1]);
        UNROLL for (int n = 1; n < E / 4; n++)
            a = fmaxf(a, fmaxf(s[4 * n + 2 * h], s[4 * n + 2 * h + 1]));
        max[h] = a;
        far |= (a - r.top[h]) * scale > LAG;
    }
    r.lifted = FIRST || __any_sync(~0u, far);
    if (!r.lifted) return;
    UNROLL for (int h = 0; h < 2; h++) {
        float a = fmaxf(max[h], __shfl_xor_sync(~0u, max[h], 1));
        a = fmaxf(fmaxf(a, __shfl_xor_sync(~0u, a, 2)), r.top[h]);
        r.factor[h] = r.top[h] == -INFINITY_F ? 0 : ex2_approx((r.top[h] - a) * scale);
        r.top[h] = a;
        r.sum[h] *= r.factor[h];
    }
}
DEVICE void lift_output(rows &r)
{
    if (!r.lifted) return;
    UNROLL for (int n = 0; n < HEAD / 8; n++)
        UNROLL for (int i = 0; i < 4; i++) r.o[4 * n + i] *= r.factor[i / 2];
}

/* s = exp2(scale (s - top)); adds to the sums. NONE: all scores of a row may have been -inf; `top`
 * is then -inf. */
template <bool NONE, int E> DEVICE void exponentials(rows &r, float (&s)[E], float scale)
{
    float less[2] = {r.top[0] * scale, r.top[1] * scale};
    UNROLL for (int h = 0; NONE && h < 2; h++)
        if (r.top[h] == -INFINITY_F) less[h] = 0;
    UNROLL for (int n = 0; n < E / 4; n++)
        UNROLL for (int h = 0; h < 2; h++) {
            float *a = &s[4 * n + 2 * h];
            a[0] = ex2_approx(a[0] * scale - less[h]), a[1] = ex2_approx(a[1] * scale - less[h]);
            r.sum[h] += a[0] + a[1];
        }
}

/* A byte has its sign set if its element is kept; [j][h] as in drop_bytes. */
struct kept {
    u32 w[DROPOUT ? KEYS / 16 : 1][2];
};
DEVICE void random_tile(kept &a, const rows &r, const drop &d, int first)
{
#if DROPOUT
    UNROLL for (int j = 0; j < KEYS / 16; j += 2) {
        drop_bytes bytes = random_bytes(d, r.first / 16, first / 16 + j);
        UNROLL for (int i = 0; i < 2; i++)
            UNROLL for (int h = 0; h < 2; h++)
                a.w[j + i][h] = dropout_kept(bytes.w[i][h], d.less, d.carry);
        UNROLL for (int i = 0; i < 2; i++)
            computed(a.w[j + i]);
    }
#endif
}
/* p = s in bf16, with dropped elements zero. */
template <int E> DEVICE void pack_weights(rows &r, const float (&s)[E], const kept &a)
{
    UNROLL for (int j = 0; j < KEYS / 16; j++)
        UNROLL for (int i = 0; i < 4; i++) {
            if (8 * j >= E) {
                r.p[j][i] = 0;
                continue;
            }
            r.p[j][i] = pack_bf16(s[8 * j + 2 * i], s[8 * j + 2 * i + 1]);
            if (DROPOUT) drop_pair(r.p[j][i], a.w[DROPOUT ? j : 0][i % 2], i >= 2);
        }
}
