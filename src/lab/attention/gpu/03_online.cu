/* 03_online.cu - online softmax in tiles (FlashAttention 1, Dao et al. 2022).
 *
 * A block computes a head. It loads 64 keys and their values once, and loops over all queries that
 * attend to them. For each query it loads the largest score so far, the sum and the output from
 * memory, updates them, and stores them again. So no row of scores has to exist as a whole, and
 * shared memory no longer limits the number of tokens. But the outputs, as floats, are loaded and
 * stored for each tile of keys, and there are only as many blocks as heads: 96 blocks leave a
 * quarter of an H100 idle. */
#include "lab/attention/gpu/tiles.cuh"

/* `kept` has the state of all tokens of a head: D outputs of each token, then all largest scores,
 * then all sums. load and keep move a thread's part of a tile of 64 queries. */
DEVICE void load(state &r, const float *kept, i64 tokens, i64 i0)
{
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    UNROLL for (int i = 0; i < 4; i++)
    {
        i64 row = min((long long)(i0 + ty + 16 * i), (long long)tokens - 1);
        r.top[i] = kept[tokens * D + row];
        r.sum[i] = kept[tokens * (D + 1) + row];
        UNROLL for (int j = 0; j < 4; j++) r.out[i][j] = kept[row * D + tx + 16 * j];
    }
}
DEVICE void keep(const state &r, float *kept, i64 tokens, i64 i0)
{
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    UNROLL for (int i = 0; i < 4; i++)
    {
        i64 row = i0 + ty + 16 * i;
        if (row >= tokens) continue;
        if (tx == 0) kept[tokens * D + row] = r.top[i], kept[tokens * (D + 1) + row] = r.sum[i];
        UNROLL for (int j = 0; j < 4; j++) kept[row * D + tx + 16 * j] = r.out[i][j];
    }
}

KERNEL(256) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens, float *kept)
{
    extern __shared__ float tiles[];
    float *q = tiles, *k = q + TILE * PITCH, *v = k + TILE * PITCH, *p = v + TILE * PITCH;
    i64 pitch = 3 * heads * D;
    int head = blockIdx.x;
    kept += head * tokens * (D + 2);
    for (i64 j0 = 0; j0 < tokens; j0 += TILE) {
        __syncthreads();
        copy_tile(k, token(x, 1, head, j0, heads, tokens), pitch, tokens - j0);
        copy_tile(v, token(x, 2, head, j0, heads, tokens), pitch, tokens - j0);
        for (i64 i0 = CAUSAL ? j0 : 0; i0 < tokens; i0 += TILE) {
            state r;
            __syncthreads();
            copy_tile(q, token(x, 0, head, i0, heads, tokens), pitch, tokens - i0);
            __syncthreads();
            if (j0 == 0)
                begin(r);
            else
                load(r, kept, tokens, i0);
            take_in(r, q, k, v, p, keys_of(i0, tokens) - j0);
            if (CAUSAL ? i0 == j0 : j0 + TILE >= tokens) /* the last keys */
                finish(r, result(y, head, i0, heads, tokens), heads * D, tokens - i0);
            else
                keep(r, kept, tokens, i0);
        }
    }
}
