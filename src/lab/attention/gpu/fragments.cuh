/* fragments.cuh - attention of 64 queries (four warps with 16 each) to tiles of 64 keys by
 * mma.sync.
 *
 * An mma.sync adds products of 16 queries and 8 keys over 16 elements of the head. The scores of 16
 * keys, packed to bf16, have exactly the layout of the left operand of the second product, so
 * probabilities stay in registers. A tile in shared memory has rows of 128 bytes; the chunks of 16
 * bytes of a row are swizzled, so that ldmatrix reads without bank conflicts. The transposed form
 * of ldmatrix reads values as the right operand. */
#pragma once
#include "lab/attention/gpu/heads.cuh"
#include "mma.cuh"
#include "rows.cuh"

constexpr int TILE = 64, THREADS_OF_BLOCK = 128, ROW = 2 * D, TILE_BYTES = TILE * ROW;

/* The offset in a tile of chunk c of a row. */
DEVICE int place(int row, int c)
{
    return row * ROW + (c ^ row % 8) * 16;
}

/* Reductions over the 4 lanes that share a row. */
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

/* A thread's part of rows g and g + 8 of its warp, g = lane / 4: the largest score so far, the sum
 * of exponentials, and outputs. */
struct state {
    float top[2], sum[2], out[8][4];
};
DEVICE void begin(state &r)
{
    UNROLL for (int i = 0; i < 2; i++) r.top[i] = LOWEST_F, r.sum[i] = 0;
    UNROLL for (int n = 0; n < 8; n++) UNROLL for (int e = 0; e < 4; e++) r.out[n][e] = 0;
}

/* Loads the 16 queries of this warp as left operands of mma.sync. */
DEVICE void load_queries(u32 (&q)[4][4], u32 tile)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    UNROLL for (int k = 0; k < 4; k++)
        ldmatrix_x4(q[k], tile + place(16 * warp + lane % 16, 2 * k + lane / 16));
}

/* Adds 64 more keys. The block's first query attends to the first `seen` of these keys; with a
 * causal mask, each next query attends to one key more. */
DEVICE void take_in(state &r, const u32 (&q)[4][4], u32 keys, u32 values, int seen)
{
    constexpr float FACTOR = 0.125f * LOG2_E;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
    float s[8][4] = {};
    UNROLL for (int k = 0; k < 4; k++) UNROLL for (int n = 0; n < 4; n++)
    {
        u32 b[4]; /* 16 keys and 16 elements */
        ldmatrix_x4(b, keys + place(16 * n + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
        mma_m16n8k16(s[2 * n], q[k], b[0], b[1]);
        mma_m16n8k16(s[2 * n + 1], q[k], b[2], b[3]);
    }
    UNROLL for (int i = 0; i < 2; i++)
    {
        float most = r.top[i], all = 0;
        UNROLL for (int n = 0; n < 8; n++) UNROLL for (int e = 2 * i; e < 2 * i + 2; e++)
        {
            bool sees = 8 * n + 2 * c + e % 2 < seen + (CAUSAL ? 16 * warp + g + 8 * i : 0);
            s[n][e] = sees ? s[n][e] : -INFINITY_F;
            most = fmaxf(most, s[n][e]);
        }
        most = row_of_4_max(most);
        float factor = ex2_approx((r.top[i] - most) * FACTOR);
        UNROLL for (int n = 0; n < 8; n++) UNROLL for (int e = 2 * i; e < 2 * i + 2; e++)
        {
            s[n][e] = ex2_approx((s[n][e] - most) * FACTOR);
            all += s[n][e];
            r.out[n][e] *= factor;
        }
        r.sum[i] = r.sum[i] * factor + all;
        r.top[i] = most;
    }
    UNROLL for (int k = 0; k < 4; k++)
    { /* 16 keys */
        u32 p[4] = {pack_bf16(s[2 * k][0], s[2 * k][1]), pack_bf16(s[2 * k][2], s[2 * k][3]),
                    pack_bf16(s[2 * k + 1][0], s[2 * k + 1][1]),
                    pack_bf16(s[2 * k + 1][2], s[2 * k + 1][3])};
        UNROLL for (int n = 0; n < 4; n++)
        {
            u32 b[4]; /* 16 keys and 16 elements */
            ldmatrix_x4_trans(b, values + place(16 * k + lane % 16, 2 * n + lane / 16));
            mma_m16n8k16(r.out[2 * n], p, b[0], b[1]);
            mma_m16n8k16(r.out[2 * n + 1], p, b[2], b[3]);
        }
    }
}

/* Writes y for the first `rows` rows of the block. */
DEVICE void finish(const state &r, ELEMENT *y, i64 pitch, i64 rows)
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
    UNROLL for (int i = 0; i < 2; i++)
    {
        float factor = 1 / row_of_4_sum(r.sum[i]);
        int row = 16 * warp + g + 8 * i;
        if (row >= rows) continue;
        UNROLL for (int n = 0; n < 8; n++) * (u32 *)(y + row * pitch + 8 * n + 2 * c) =
            pack_bf16(r.out[n][2 * i] * factor, r.out[n][2 * i + 1] * factor);
    }
}
