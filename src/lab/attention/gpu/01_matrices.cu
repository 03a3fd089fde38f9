/* 01_matrices.cu - the definition: matrices of tokens x tokens in memory.
 *
 * There are three kernels, as in a framework. In the first, each block computes the scores of 16
 * queries and 16 keys; in the second, each warp computes the softmax of a row; the third computes
 * the weighted sums of the values. The first kernel writes the matrix of floats (4 MiB per head for
 * 1024 tokens), the second reads it three times and writes it, and the third reads it; for 1024
 * tokens, q, k, v and y together in bf16 have 1/8 of its size. With a causal mask, scores of a
 * query and a later key are neither stored nor read. */
#include "lab/attention/gpu/heads.cuh"
#include "rows.cuh"

constexpr int TILE = 16;

KERNEL(256) attention_scores(ELEMENT *, const ELEMENT *x, i64, i64 heads, i64 tokens, float *s)
{
    __shared__ float q[TILE][D + 1], k[TILE][D + 1];
    int row = threadIdx.x / TILE, column = threadIdx.x % TILE;
    i64 i0 = (i64)blockIdx.x * TILE, j0 = (i64)blockIdx.y * TILE, pitch = 3 * heads * D;
    if (CAUSAL && j0 > i0 + TILE - 1) return;
    const ELEMENT *of_q = token(x, 0, blockIdx.z, 0, heads, tokens);
    const ELEMENT *of_k = token(x, 1, blockIdx.z, 0, heads, tokens);
    for (int e = threadIdx.x; e < TILE * D; e += 256) {
        int r = e / D, d = e % D;
        q[r][d] = i0 + r < tokens ? to_float(of_q[(i0 + r) * pitch + d]) : 0;
        k[r][d] = j0 + r < tokens ? to_float(of_k[(j0 + r) * pitch + d]) : 0;
    }
    __syncthreads();
    float sum = 0;
    UNROLL for (int d = 0; d < D; d++) sum += q[row][d] * k[column][d];
    i64 i = i0 + row, j = j0 + column;
    if (i < tokens && j < tokens && j < keys_of(i, tokens))
        s[((i64)blockIdx.z * tokens + i) * tokens + j] = 0.125f * sum;
}

KERNEL(256)
attention_softmax(ELEMENT *, const ELEMENT *, i64 batch, i64 heads, i64 tokens, float *s)
{
    i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= batch * heads * tokens) return;
    i64 n = keys_of(row % tokens, tokens);
    int lane = threadIdx.x % 32;
    float most = LOWEST_F, sum = 0;
    s += row * tokens;
    for (i64 j = lane; j < n; j += 32) most = fmaxf(most, s[j]);
    most = warp_max(most);
    for (i64 j = lane; j < n; j += 32) sum += exp_for<ELEMENT>(s[j] - most);
    float factor = 1 / warp_sum(sum);
    for (i64 j = lane; j < n; j += 32) s[j] = exp_for<ELEMENT>(s[j] - most) * factor;
}

/* 16 queries of a head: thread (d, r) sums element d of rows r, r + 4, r + 8 and r + 12. */
KERNEL(256) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens, const float *s)
{
    int d = threadIdx.x % D, r = threadIdx.x / D;
    i64 i0 = (i64)blockIdx.x * TILE, pitch = 3 * heads * D;
    const ELEMENT *v = token(x, 2, blockIdx.y, 0, heads, tokens) + d;
    float sum[4] = {0, 0, 0, 0};
    s += ((i64)blockIdx.y * tokens + i0) * tokens;
    for (i64 j = 0; j < keys_of_all(i0, TILE, tokens); j++) {
        float value = to_float(v[j * pitch]);
        UNROLL for (int k = 0; k < 4; k++)
        {
            i64 i = i0 + r + 4 * k;
            if (i < tokens && j < keys_of(i, tokens)) sum[k] += s[(r + 4 * k) * tokens + j] * value;
        }
    }
    UNROLL for (int k = 0; k < 4; k++)
    {
        i64 i = i0 + r + 4 * k;
        if (i < tokens) result(y, blockIdx.y, i, heads, tokens)[d] = to<ELEMENT>(sum[k]);
    }
}
