/* 06_async.cu - cp.async: the next tile is on its way while this one is multiplied.
 *
 * Shared memory holds two tiles of keys and two of values. Before a block multiplies a tile, it
 * starts the copies of the next tile, which need no registers. Blocks with the most keys start
 * first, so that the last wave of blocks is short. */
#include "lab/attention/gpu/fragments.cuh"

/* Starts copying a tile. The first `rows` rows of the tile exist; its other rows become zero. */
DEVICE void start_tile(u32 to, const ELEMENT *from, i64 pitch, int rows)
{
    UNROLL for (int e = threadIdx.x; e < TILE * 8; e += THREADS_OF_BLOCK)
    {
        bool there = e / 8 < rows;
        cp_async_16(to + place(e / 8, e % 8), there ? from + e / 8 * pitch + e % 8 * 8 : from,
                    there ? 16 : 0);
    }
}

KERNEL_MIN(128, 3) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    __shared__ __align__(128) u8 keys[2 * TILE_BYTES], values[2 * TILE_BYTES];
    i64 i0 = (i64)(gridDim.x - 1 - blockIdx.x) * TILE, pitch = 3 * heads * D;
    /* `left` tokens, and `seen` keys of the first query, remain from the current tile on. */
    int left = (int)tokens, seen = (int)keys_of(i0, tokens), buffer = 0;
    int end = (int)keys_of_all(i0, TILE, tokens);
    u32 at_keys = shared_address(keys), at_values = shared_address(values), q[4][4];
    const ELEMENT *k = token(x, 1, blockIdx.y, 0, heads, tokens);
    state r;
    begin(r);
    start_tile(at_keys + TILE_BYTES, k - heads * D + i0 * pitch, pitch, left - (int)i0);
    start_tile(at_keys, k, pitch, left);
    start_tile(at_values, k + heads * D, pitch, left);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    load_queries(q, at_keys + TILE_BYTES);
#pragma unroll 1
    for (; end > 0; end -= TILE, seen -= TILE, buffer ^= TILE_BYTES) {
        cp_async_wait<0>();
        __syncthreads(); /* this tile has arrived, and all warps have used the tile before */
        k += TILE * pitch, left -= TILE;
        if (end > TILE) {
            start_tile(at_keys + (buffer ^ TILE_BYTES), k, pitch, left);
            start_tile(at_values + (buffer ^ TILE_BYTES), k + heads * D, pitch, left);
            cp_async_commit();
        }
        take_in(r, q, at_keys + buffer, at_values + buffer, seen);
    }
    finish(r, result(y, blockIdx.y, i0, heads, tokens), heads * D, tokens - i0);
}
