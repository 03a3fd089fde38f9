/* 02_rows.cu - one kernel: the scores of a few queries stay in shared memory.
 *
 * A block has eight queries of a head, one for each warp. It loads tiles of 32 keys, and later of
 * 32 values, into shared memory, and all eight warps use them; a lane computes the score of one
 * key. No matrix of tokens x tokens is stored. Each block, with its eight queries, reads keys and
 * values once, from L2. The scores take 4 bytes of shared memory for each query and key, which
 * limits the number of tokens. */
#include "lab/attention/gpu/heads.cuh"
#include "rows.cuh"

constexpr int WARPS = 8, TILE = 32;

KERNEL_MIN(256, 5) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    extern __shared__ float score[]; /* WARPS rows of `tokens` */
    __shared__ float q[WARPS][D], tile[TILE][D + 1];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    i64 i0 = (i64)blockIdx.x * WARPS, i = i0 + warp, pitch = 3 * heads * D;
    int end = (int)keys_of_all(i0, WARPS, tokens), own = (int)keys_of(i, tokens);
    const ELEMENT *of_q = token(x, 0, blockIdx.y, 0, heads, tokens);
    const ELEMENT *of_k = token(x, 1, blockIdx.y, 0, heads, tokens);
    const ELEMENT *of_v = token(x, 2, blockIdx.y, 0, heads, tokens);
    float *s = score + warp * tokens, most = LOWEST_F, sum = 0, low = 0, high = 0;
    for (int d = lane; d < D; d += 32) q[warp][d] = i < tokens ? to_float(of_q[i * pitch + d]) : 0;
    for (int j0 = 0; j0 < end; j0 += TILE) {
        __syncthreads(); /* all warps have used the previous tile */
        for (int e = threadIdx.x; e < TILE * D; e += 256)
            tile[e / D][e % D] =
                j0 + e / D < end ? to_float(of_k[(j0 + e / D) * pitch + e % D]) : 0;
        __syncthreads();
        float dot = 0;
        UNROLL for (int d = 0; d < D; d++) dot += q[warp][d] * tile[lane][d];
        if (j0 + lane >= own || j0 + lane >= end) continue;
        s[j0 + lane] = 0.125f * dot;
        most = fmaxf(most, 0.125f * dot);
    }
    most = warp_max(most);
    for (int j = lane; j < end && j < own; j += 32) sum += s[j] = exp_for<ELEMENT>(s[j] - most);
    float factor = 1 / warp_sum(sum);
    for (int j0 = 0; j0 < end; j0 += TILE) {
        __syncthreads();
        for (int e = threadIdx.x; e < TILE * D; e += 256)
            tile[e / D][e % D] =
                j0 + e / D < end ? to_float(of_v[(j0 + e / D) * pitch + e % D]) : 0;
        __syncthreads();
        for (int j = 0; j < TILE && j0 + j < own && j0 + j < end; j++) {
            low += s[j0 + j] * tile[j][lane];
            high += s[j0 + j] * tile[j][lane + 32];
        }
    }
    if (i >= tokens) return;
    y = result(y, blockIdx.y, i, heads, tokens);
    y[lane] = to<ELEMENT>(low * factor);
    y[lane + 32] = to<ELEMENT>(high * factor);
}
