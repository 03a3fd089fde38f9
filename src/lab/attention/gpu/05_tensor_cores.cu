/* 05_tensor_cores.cu - tensor cores: mma.sync for both products.
 *
 * Four warps have 16 queries each. The scores of 16 queries and 8 keys are one result of an
 * mma.sync; two of them next to each other are, packed to bf16, exactly the left operand of the
 * second product, so probabilities never leave the registers. Keys and values lie in shared memory
 * in rows of 128 bytes whose chunks of 16 bytes change places by the number of the row, so that
 * ldmatrix reads without conflicts; transposed, it reads values as the right operand. */
#include "mma.cuh"
#include "rows.cuh"

constexpr int D = 64, TILE = 64, THREADS_OF_BLOCK = 128, ROW = 2 * D;

DEVICE const ELEMENT *token(const ELEMENT *x, int which, int head, i64 t, i64 heads, i64 tokens)
{
    return x + ((((i64)head / heads * tokens + t) * 3 + which) * heads + head % heads) * D;
}
/* Where chunk c of 16 bytes of a row is. */
DEVICE int place(int row, int c)
{
    return row * ROW + (c ^ row % 8) * 16;
}
DEVICE void copy_tile(u8 *to, const ELEMENT *from, i64 pitch, i64 rows)
{
    for (int e = threadIdx.x; e < TILE * 8; e += THREADS_OF_BLOCK) {
        uint4 a = make_uint4(0, 0, 0, 0);
        if (e / 8 < rows) a = *(const uint4 *)(from + e / 8 * pitch + e % 8 * 8);
        *(uint4 *)(to + place(e / 8, e % 8)) = a;
    }
}
/* Over the 4 lanes that have a row together. */
DEVICE float row_of_4_max(float a)
{
    a = fmaxf(a, __shfl_xor_sync(~0u, a, 1));
    return fmaxf(a, __shfl_xor_sync(~0u, a, 2));
}
DEVICE float row_of_4_sum(float a)
{
    a += __shfl_xor_sync(~0u, a, 1);
    return a + __shfl_xor_sync(~0u, a, 2);
}

KERNEL(128) attention(ELEMENT *y, const ELEMENT *x, i64, i64 heads, i64 tokens)
{
    constexpr float FACTOR = 0.125f * LOG2_E;
    __shared__ __align__(128) u8 keys[TILE * ROW], values[TILE * ROW];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
    i64 i0 = (i64)blockIdx.x * TILE, pitch = 3 * heads * D;
    u32 at_keys = shared_address(keys), at_values = shared_address(values);
    u32 q[4][4];
    float out[8][4] = {}, top[2] = {LOWEST_F, LOWEST_F}, sum[2] = {};
    copy_tile(keys, token(x, 0, blockIdx.y, i0, heads, tokens), pitch, tokens - i0);
    __syncthreads();
    UNROLL for (int k = 0; k < 4; k++)
        ldmatrix_x4(q[k], at_keys + place(16 * warp + lane % 16, 2 * k + lane / 16));
    i64 first = i0 + 16 * warp + g; /* the query of row g; that of row g + 8 is 8 further */
    for (i64 j0 = 0; j0 <= i0; j0 += TILE) {
        __syncthreads();
        copy_tile(keys, token(x, 1, blockIdx.y, j0, heads, tokens), pitch, tokens - j0);
        copy_tile(values, token(x, 2, blockIdx.y, j0, heads, tokens), pitch, tokens - j0);
        __syncthreads();
        float s[8][4] = {};
        UNROLL for (int k = 0; k < 4; k++) UNROLL for (int n = 0; n < 4; n++)
        {
            u32 b[4]; /* 16 keys and 16 elements */
            ldmatrix_x4(b,
                        at_keys + place(16 * n + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
            mma_m16n8k16(s[2 * n], q[k], b[0], b[1]);
            mma_m16n8k16(s[2 * n + 1], q[k], b[2], b[3]);
        }
        UNROLL for (int r = 0; r < 2; r++)
        { /* row g, row g + 8 */
            float most = top[r], all = 0;
            UNROLL for (int n = 0; n < 8; n++) UNROLL for (int e = 2 * r; e < 2 * r + 2; e++)
            {
                bool seen = j0 + 8 * n + 2 * c + e % 2 <= first + 8 * r;
                s[n][e] = seen ? s[n][e] : -INFINITY_F;
                most = fmaxf(most, s[n][e]);
            }
            most = row_of_4_max(most);
            float factor = ex2_approx((top[r] - most) * FACTOR);
            UNROLL for (int n = 0; n < 8; n++) UNROLL for (int e = 2 * r; e < 2 * r + 2; e++)
            {
                s[n][e] = ex2_approx((s[n][e] - most) * FACTOR);
                all += s[n][e];
                out[n][e] *= factor;
            }
            sum[r] = sum[r] * factor + all;
            top[r] = most;
        }
        UNROLL for (int k = 0; k < 4; k++)
        { /* 16 keys */
            u32 p[4] = {pack_bf16(s[2 * k][0], s[2 * k][1]), pack_bf16(s[2 * k][2], s[2 * k][3]),
                        pack_bf16(s[2 * k + 1][0], s[2 * k + 1][1]),
                        pack_bf16(s[2 * k + 1][2], s[2 * k + 1][3])};
            UNROLL for (int n = 0; n < 4; n++)
            {
                u32 b[4]; /* 16 keys and 16 elements */
                ldmatrix_x4_trans(b, at_values + place(16 * k + lane % 16, 2 * n + lane / 16));
                mma_m16n8k16(out[2 * n], p, b[0], b[1]);
                mma_m16n8k16(out[2 * n + 1], p, b[2], b[3]);
            }
        }
    }
    i64 b = blockIdx.y / heads, h = blockIdx.y % heads;
    UNROLL for (int r = 0; r < 2; r++)
    {
        float factor = 1 / row_of_4_sum(sum[r]);
        i64 at = first + 8 * r;
        if (at >= tokens) continue;
        ELEMENT *to = y + ((b * tokens + at) * heads + h) * D + 2 * c;
        UNROLL for (int n = 0; n < 8; n++) * (u32 *)(to + 8 * n) =
            pack_bf16(out[n][2 * r] * factor, out[n][2 * r + 1] * factor);
    }
}
