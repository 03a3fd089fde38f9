/* tiles.cuh - tiles of 64 queries and 64 keys, multiplied by 256 threads through shared memory.
 *
 * Thread (ty, tx) of 16 x 16 has rows ty + 16 i and columns tx + 16 j of each tile. */
#pragma once
#include "lab/attention/gpu/heads.cuh"
#include "rows.cuh"

constexpr int TILE = 64, PITCH = D + 1;

DEVICE void copy_tile(float *to, const ELEMENT *from, i64 pitch, i64 rows)
{
    for (int e = threadIdx.x; e < TILE * D; e += 256)
        to[e / D * PITCH + e % D] = e / D < rows ? to_float(from[e / D * pitch + e % D]) : 0;
}

/* Reductions over the 16 lanes that share a row. */
DEVICE float row_of_16_max(float a)
{
    UNROLL for (int k = 8; k; k /= 2) a = fmaxf(a, __shfl_xor_sync(~0u, a, k));
    return a;
}
DEVICE float row_of_16_sum(float a)
{
    UNROLL for (int k = 8; k; k /= 2) a += __shfl_xor_sync(~0u, a, k);
    return a;
}

/* A thread's part of its four rows: the largest score so far, the sum of e^(score - largest), and
 * the sum of values weighted by these exponentials. */
struct state {
    float top[4], sum[4], out[4][4];
};
DEVICE void begin(state &r)
{
    UNROLL for (int i = 0; i < 4; i++)
    {
        r.top[i] = LOWEST_F, r.sum[i] = 0;
        UNROLL for (int j = 0; j < 4; j++) r.out[i][j] = 0;
    }
}

/* s = q k^T */
DEVICE void scores(float (&s)[4][4], const float *q, const float *k, int ty, int tx)
{
    UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < 4; j++) s[i][j] = 0;
    for (int d = 0; d < D; d++) {
        float a[4], b[4];
        UNROLL for (int i = 0; i < 4; i++) a[i] = q[(ty + 16 * i) * PITCH + d];
        UNROLL for (int j = 0; j < 4; j++) b[j] = k[(tx + 16 * j) * PITCH + d];
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < 4; j++) s[i][j] +=
            a[i] * b[j];
    }
}

/* Adds 64 more keys. The first query attends to the first `seen` of these keys; with a causal mask,
 * each next query attends to one key more. `p` is shared memory for a tile of probabilities. */
DEVICE void take_in(state &r, const float *q, const float *k, const float *v, float *p, i64 seen)
{
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float s[4][4];
    scores(s, q, k, ty, tx);
    UNROLL for (int i = 0; i < 4; i++)
    {
        float most = r.top[i], all = 0;
        UNROLL for (int j = 0; j < 4; j++)
        {
            bool sees = tx + 16 * j < seen + (CAUSAL ? ty + 16 * i : 0);
            s[i][j] = sees ? 0.125f * s[i][j] : -INFINITY_F;
            most = fmaxf(most, s[i][j]);
        }
        most = row_of_16_max(most);
        float factor = exp_for<ELEMENT>(r.top[i] - most);
        UNROLL for (int j = 0; j < 4; j++)
        {
            float e = exp_for<ELEMENT>(s[i][j] - most);
            p[(ty + 16 * i) * PITCH + tx + 16 * j] = e;
            all += e;
            r.out[i][j] *= factor;
        }
        r.sum[i] = r.sum[i] * factor + row_of_16_sum(all);
        r.top[i] = most;
    }
    __syncwarp(); /* a row of p is written and read by the same half of a warp */
    for (int j = 0; j < TILE; j++) {
        float a[4], b[4];
        UNROLL for (int i = 0; i < 4; i++) a[i] = p[(ty + 16 * i) * PITCH + j];
        UNROLL for (int d = 0; d < 4; d++) b[d] = v[j * PITCH + tx + 16 * d];
        UNROLL for (int i = 0; i < 4; i++) UNROLL for (int d = 0; d < 4; d++) r.out[i][d] +=
            a[i] * b[d];
    }
}

/* Writes y for the first `rows` rows. */
DEVICE void finish(const state &r, ELEMENT *y, i64 pitch, i64 rows)
{
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    UNROLL for (int i = 0; i < 4; i++)
    {
        if (ty + 16 * i >= rows) continue;
        UNROLL for (int d = 0; d < 4; d++) y[(ty + 16 * i) * pitch + tx + 16 * d] =
            to<ELEMENT>(r.out[i][d] / r.sum[i]);
    }
}
