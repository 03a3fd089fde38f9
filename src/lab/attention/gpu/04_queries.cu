/* 04_queries.cu - parallel over queries (FlashAttention 2, Dao 2023).
 *
 * The loops change places: a block keeps 64 queries of a head and goes over the keys, so the
 * maximum, the sum and the output of each query stay in registers and are written once. There are
 * as many blocks as tiles of queries, and they need no word from each other. The arithmetic is as
 * before: 8 reads of shared memory for 16 multiplications. */
#include "rows.cuh"

constexpr int D = 64, TILE = 64, PITCH = D + 1;

DEVICE const ELEMENT *token(const ELEMENT *x, int which, int head, i64 t, i64 heads, i64 tokens)
{
    return x + ((((i64)head / heads * tokens + t) * 3 + which) * heads + head % heads) * D;
}
DEVICE void copy_tile(float *to, const ELEMENT *from, i64 pitch, i64 rows)
{
    for (int e = threadIdx.x; e < TILE * D; e += 256)
        to[e / D * PITCH + e % D] = e / D < rows ? to_float(from[e / D * pitch + e % D]) : 0;
}
/* Over the 16 lanes that have a row together. */
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

/* Thread (ty, tx) of 16 x 16 has rows ty + 16 i and columns tx + 16 j of each tile. */
KERNEL(256) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    extern __shared__ float tiles[];
    float *q = tiles, *k = q + TILE * PITCH, *v = k + TILE * PITCH, *p = v + TILE * PITCH;
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    i64 i0 = (i64)blockIdx.x * TILE, pitch = 3 * heads * D;
    float out[4][4] = {}, top[4], sum[4] = {};
    UNROLL for (int i = 0; i < 4; i++) top[i] = LOWEST_F;
    copy_tile(q, token(x, 0, blockIdx.y, i0, heads, tokens), pitch, tokens - i0);
    for (i64 j0 = 0; j0 <= i0; j0 += TILE) {
        __syncthreads();
        copy_tile(k, token(x, 1, blockIdx.y, j0, heads, tokens), pitch, tokens - j0);
        copy_tile(v, token(x, 2, blockIdx.y, j0, heads, tokens), pitch, tokens - j0);
        __syncthreads();
        float s[4][4] = {};
        for (int d = 0; d < D; d++) {
            float a[4], b[4];
            UNROLL for (int i = 0; i < 4; i++) a[i] = q[(ty + 16 * i) * PITCH + d];
            UNROLL for (int j = 0; j < 4; j++) b[j] = k[(tx + 16 * j) * PITCH + d];
            UNROLL for (int i = 0; i < 4; i++) UNROLL for (int j = 0; j < 4; j++) s[i][j] +=
                a[i] * b[j];
        }
        UNROLL for (int i = 0; i < 4; i++)
        {
            float most = top[i], all = 0;
            UNROLL for (int j = 0; j < 4; j++)
            {
                bool seen = j0 + tx + 16 * j <= i0 + ty + 16 * i;
                s[i][j] = seen ? 0.125f * s[i][j] : -INFINITY_F;
                most = fmaxf(most, s[i][j]);
            }
            most = row_of_16_max(most);
            float factor = exp_for<ELEMENT>(top[i] - most);
            UNROLL for (int j = 0; j < 4; j++)
            {
                float e = exp_for<ELEMENT>(s[i][j] - most);
                p[(ty + 16 * i) * PITCH + tx + 16 * j] = e;
                all += e;
                out[i][j] *= factor;
            }
            sum[i] = sum[i] * factor + row_of_16_sum(all);
            top[i] = most;
        }
        __syncwarp(); /* a row of p is written and read by the same half of a warp */
        for (int j = 0; j < TILE; j++) {
            float a[4], b[4];
            UNROLL for (int i = 0; i < 4; i++) a[i] = p[(ty + 16 * i) * PITCH + j];
            UNROLL for (int d = 0; d < 4; d++) b[d] = v[j * PITCH + tx + 16 * d];
            UNROLL for (int i = 0; i < 4; i++) UNROLL for (int d = 0; d < 4; d++) out[i][d] +=
                a[i] * b[d];
        }
    }
    i64 b = blockIdx.y / heads, h = blockIdx.y % heads;
    UNROLL for (int i = 0; i < 4; i++)
    {
        i64 at = i0 + ty + 16 * i;
        if (at >= tokens) continue;
        UNROLL for (int d = 0; d < 4; d++) y[((b * tokens + at) * heads + h) * D + tx + 16 * d] =
            to<ELEMENT>(out[i][d] / sum[i]);
    }
}
