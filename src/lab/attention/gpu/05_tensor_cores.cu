/* 05_tensor_cores.cu - tensor cores: mma.sync for both products.
 *
 * The loops are as before, but four warps compute 16 queries each by mma.sync. One mma.sync
 * instruction of a warp does 2048 multiplications and as many additions. The probabilities stay in
 * registers (fragments.cuh). */
#include "lab/attention/gpu/fragments.cuh"

DEVICE void copy_tile(u8 *to, const ELEMENT *from, i64 pitch, i64 rows)
{
    for (int e = threadIdx.x; e < TILE * 8; e += THREADS_OF_BLOCK) {
        uint4 a = make_uint4(0, 0, 0, 0);
        if (e / 8 < rows) a = *(const uint4 *)(from + e / 8 * pitch + e % 8 * 8);
        *(uint4 *)(to + place(e / 8, e % 8)) = a;
    }
}

KERNEL_MIN(128, 3) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    __shared__ __align__(128) u8 keys[TILE_BYTES], values[TILE_BYTES];
    i64 i0 = (i64)blockIdx.x * TILE, pitch = 3 * heads * D;
    int head = blockIdx.y;
    u32 q[4][4];
    state r;
    begin(r);
    copy_tile(keys, token(x, 0, head, i0, heads, tokens), pitch, tokens - i0);
    __syncthreads();
    load_queries(q, shared_address(keys));
    for (i64 j0 = 0; j0 < keys_of_all(i0, TILE, tokens); j0 += TILE) {
        __syncthreads();
        copy_tile(keys, token(x, 1, head, j0, heads, tokens), pitch, tokens - j0);
        copy_tile(values, token(x, 2, head, j0, heads, tokens), pitch, tokens - j0);
        __syncthreads();
        take_in(r, q, shared_address(keys), shared_address(values), 
                (int)(keys_of(i0, tokens) - j0));
    }
    finish(r, result(y, head, i0, heads, tokens), heads * D, tokens - i0);
}
