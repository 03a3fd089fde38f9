/* attention_random.cuh - dropout's random bytes for fragments of an attention matrix, forward and
 * backward, for mma.sync and wgmma, which all give a warp the same blocks of 16x16 elements.
 *
 * A Philox call returns the bytes of a 4x4 set (dropout_attention). Two lanes, 4 apart, share a
 * set. One of these lanes makes the call for the first of two 16x16 blocks, and the other lane
 * makes the call for the second block. Then the two lanes exchange words. */
#pragma once
#include "device.cuh"

/* w[block][i]: a lane's bytes. If rows are queries, w[block][i] has row g + 8i, columns 2q, 2q+1,
 * 2q+8, 2q+9. If rows are keys, it has columns 2q + 8i, 2q + 8i + 1, rows g, g+8 of each. */
struct drop_bytes {
    u32 w[2][2];
};
/* The first block is (q16, k16). The second block is below the first (BELOW) or to its right. */
template <bool ROWS_ARE_KEYS, bool BELOW>
DEVICE drop_bytes random_blocks(u32 seed, u32 site, u32 step, u32 bh, int q16, int k16, int lane)
{
    int odd = lane / 4 % 2, of_row = lane / 8, of_column = lane % 4;
    if (BELOW == ROWS_ARE_KEYS)
        k16 += odd;
    else
        q16 += odd;
    words r = ROWS_ARE_KEYS ? dropout_attention(seed, site, step, bh, q16, k16, of_column, of_row)
                            : dropout_attention(seed, site, step, bh, q16, k16, of_row, of_column);
    u32 mine[2], theirs[2];
    if (ROWS_ARE_KEYS) { /* bytes odd, odd + 2 of each word, for keys g and g+8 */
        u32 even = 0x6420, uneven = 0x7531;
        UNROLL for (int i = 0; i < 2; i++) {
            mine[i] = __byte_perm(r.w[2 * i], r.w[2 * i + 1], odd ? uneven : even);
            theirs[i] = __byte_perm(r.w[2 * i], r.w[2 * i + 1], odd ? even : uneven);
        }
    } else { /* words odd and odd + 2, for queries g and g+8 */
        UNROLL for (int i = 0; i < 2; i++) {
            mine[i] = odd ? r.w[2 * i + 1] : r.w[2 * i];
            theirs[i] = odd ? r.w[2 * i] : r.w[2 * i + 1];
        }
    }
    drop_bytes d;
    UNROLL for (int i = 0; i < 2; i++) {
        u32 other = __shfl_xor_sync(~0u, theirs[i], 4);
        d.w[0][i] = odd ? other : mine[i];
        d.w[1][i] = odd ? mine[i] : other;
    }
    return d;
}

/* Dropout's key, and the constants that compare four bytes with the threshold (dropout_kept). */
struct drop {
    u32 seed, site, step, bh, less, carry;
};
/* Random bytes of blocks (q16, k16) and (q16, k16 + 1); rows are queries. */
DEVICE drop_bytes random_bytes(const drop &d, u32 q16, u32 k16)
{
    return random_blocks<false, false>(d.seed, d.site, d.step, d.bh, q16, k16, threadIdx.x % WARP);
}
