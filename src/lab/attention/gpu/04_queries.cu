/* 04_queries.cu - parallel over queries (FlashAttention 2, Dao 2023).
 *
 * The two loops are exchanged: a block keeps 64 queries of a head and loops over the keys, so the
 * maximum, the sum and the output of each query stay in registers, and the output is written once.
 * There is a block for each tile of queries, and blocks do not depend on each other. The arithmetic
 * is as before: 8 reads of shared memory for 16 multiplications. */
#include "lab/attention/gpu/tiles.cuh"

KERNEL(256) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    extern __shared__ float tiles[];
    float *q = tiles, *k = q + TILE * PITCH, *v = k + TILE * PITCH, *p = v + TILE * PITCH;
    i64 i0 = (i64)blockIdx.x * TILE, pitch = 3 * heads * D;
    int head = blockIdx.y;
    state r;
    begin(r);
    copy_tile(q, token(x, 0, head, i0, heads, tokens), pitch, tokens - i0);
    for (i64 j0 = 0; j0 < keys_of_all(i0, TILE, tokens); j0 += TILE) {
        __syncthreads();
        copy_tile(k, token(x, 1, head, j0, heads, tokens), pitch, tokens - j0);
        copy_tile(v, token(x, 2, head, j0, heads, tokens), pitch, tokens - j0);
        __syncthreads();
        take_in(r, q, k, v, p, keys_of(i0, tokens) - j0);
    }
    finish(r, result(y, head, i0, heads, tokens), heads * D, tokens - i0);
}
