/* norm_bf16.cuh - bf16 rows of whole accesses, for the layer norm and its gradient.
 *
 * COLUMNS = STEPS * LANES * 8. A row has LANES lanes, 16 or 32, so a warp has two rows or one. A
 * lane has eight neighboring columns of each step, four words of two bf16; no bounds check is
 * needed. Sums over a row are a tree over its lanes. */
#pragma once
#include "mma.cuh"

enum { N = 8, WORDS = N / 2, STEPS = COLUMNS / (N * LANES), ROWS_OF_WARP = WARP / LANES };
static_assert(COLUMNS % (N * LANES) == 0 && WARP % LANES == 0, "whole accesses");
#define EACH_STEP _Pragma("unroll") for (int s = 0; s < STEPS; s++)
#define EACH_WORD _Pragma("unroll") for (int i = 0; i < WORDS; i++)

/* Eight columns in memory format. */
struct eight {
    u32 w[WORDS];
};
DEVICE eight load_eight(const bf16 *p)
{
    const uint4 a = *(const uint4 *)p;
    eight r = {{a.x, a.y, a.z, a.w}};
    return r;
}
DEVICE void store_eight(bf16 *p, const eight &a)
{
    store_16(p, a.w[0], a.w[1], a.w[2], a.w[3]);
}
DEVICE float low_of(u32 two)
{
    return __uint_as_float(two << 16);
}
DEVICE float high_of(u32 two)
{
    return __uint_as_float(two & 0xffff0000u);
}

DEVICE int lane_of_row()
{
    return (int)threadIdx.x % LANES;
}
DEVICE int column_at(int s)
{
    return (s * LANES + lane_of_row()) * N;
}
/* The sum over the lanes of a row; all lanes of the warp must call. */
DEVICE float row_sum(float a)
{
    UNROLL for (int d = LANES / 2; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}

/* See dropout_kept. */
struct dropout_args {
    u32 seed, site, step, less, carry;
    float scale;
};
/* For a lane's columns in each step, the sign bits of the bytes mark the kept elements. */
struct keep_bits {
    u32 w[STEPS][2];
};
/* A Philox call covers 16 columns, the columns of two lanes. Each of the two lanes makes the call
 * for one of two steps and passes half of the bytes to the other lane. All lanes of the warp must
 * call. */
DEVICE keep_bits random_keep_bits(i64 first, const dropout_args &by)
{
    const bool odd = threadIdx.x & 1;
    keep_bits r;
    UNROLL for (int s = 0; s < STEPS; s += 2) {
        const bool two = s + 1 < STEPS;
        const words d = dropout_pointwise(by.seed, by.site, by.step,
                                          (u64)(first + column_at(two && odd ? s + 1 : s)) / 16);
        UNROLL for (int i = 0; i < 2; i++) {
            const u32 mine = odd ? d.w[2 + i] : d.w[i], other = odd ? d.w[i] : d.w[2 + i];
            const u32 got = two ? __shfl_xor_sync(~0u, other, 1) : mine;
            r.w[s][i] = dropout_kept(two && odd ? got : mine, by.less, by.carry);
            if (two) r.w[s + 1][i] = dropout_kept(odd ? mine : got, by.less, by.carry);
        }
    }
    return r;
}
/* A mask with ones over the kept halves of word i. */
DEVICE u32 mask_of(const keep_bits &k, int s, int i)
{
    return prmt(k.w[s][i / 2], 0, i % 2 ? 0xbbaa : 0x9988);
}
