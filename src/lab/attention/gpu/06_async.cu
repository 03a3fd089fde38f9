/* 06_async.cu - cp.async: the next tile is on its way while this one is multiplied.
 *
 * There is room for two tiles of keys and two of values. Before a tile is multiplied, the copies of
 * the next one begin, without registers that wait for them. Blocks with the most keys start first,
 * so that the last wave is short. */
#include "lab/attention/gpu/fragments.cuh"

/* Starts copying a tile of the rows that exist; the others are zero. */
DEVICE void start_tile(u32 to, const ELEMENT *from, i64 pitch, i64 rows)
{
    UNROLL for (int e = threadIdx.x; e < TILE * 8; e += THREADS_OF_BLOCK)
    {
        bool there = e / 8 < rows;
        cp_async_16(to + place(e / 8, e % 8), there ? from + e / 8 * pitch + e % 8 * 8 : from,
                    there ? 16 : 0);
    }
}

KERNEL(128) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    __shared__ __align__(128) u8 keys[2 * TILE_BYTES], values[2 * TILE_BYTES];
    i64 i0 = (i64)(gridDim.x - 1 - blockIdx.x) * TILE, pitch = 3 * heads * D;
    int head = blockIdx.y;
    u32 at_keys = shared_address(keys), at_values = shared_address(values), q[4][4];
    state r;
    begin(r);
    start_tile(at_keys + TILE_BYTES, token(x, 0, head, i0, heads, tokens), pitch, tokens - i0);
    start_tile(at_keys, token(x, 1, head, 0, heads, tokens), pitch, tokens);
    start_tile(at_values, token(x, 2, head, 0, heads, tokens), pitch, tokens);
    cp_async_commit();
    cp_async_wait<0>();
    __syncthreads();
    load_queries(q, at_keys + TILE_BYTES);
    for (int j = 0; j * TILE <= i0; j++) {
        i64 next = (i64)(j + 1) * TILE;
        int room = (j + 1) % 2 * TILE_BYTES;
        cp_async_wait<0>();
        __syncthreads(); /* this tile is there, and the one before it has been read */
        if (next <= i0) {
            start_tile(at_keys + room, token(x, 1, head, next, heads, tokens), pitch,
                       tokens - next);
            start_tile(at_values + room, token(x, 2, head, next, heads, tokens), pitch,
                       tokens - next);
            cp_async_commit();
        }
        take_in(r, q, at_keys + j % 2 * TILE_BYTES, at_values + j % 2 * TILE_BYTES,
                (int)(j * TILE - i0));
    }
    finish(r, result(y, head, i0, heads, tokens), heads * D, tokens - i0);
}
