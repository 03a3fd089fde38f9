/* attention_heads.cuh - what the texts of attention's backward on tensor cores share: which head a block has, where it lies,
 * dropout's bytes. Constants: HEAD_SIZE, GROUP; M, 2 or 1: the two blocks of 16x16 that bytes are drawn for stand below one
 * another, or beside one another. */
#pragma once
#include "mma.cuh"

/* KV heads of keys, as many of values: a row of packed q, k, v has (GROUP + 2) KV heads. */
DEVICE int kv_heads(int H)
{
    return H / GROUP;
}
/* Elements of such a row; where in it the keys and the values of head kv begin. */
DEVICE int packed_row(int H)
{
    return (GROUP + 2) * kv_heads(H) * HEAD_SIZE;
}
DEVICE int keys_at(int H, int kv)
{
    return (H + kv) * HEAD_SIZE;
}
DEVICE int values_at(int H, int kv)
{
    return (H + kv_heads(H) + kv) * HEAD_SIZE;
}

/* Grid (heads that run together, blocks of a head, times): blocks of several heads run side by side, the longest of all these
 * first, so that no long one is left for the end, and as few heads as fit into the second cache. Heads are counted through all
 * sequences. */
DEVICE int head_here()
{
    return forgotten(blockIdx.z) * gridDim.x + blockIdx.x;
}

/* The same number, as if it were another one in every turn (of which none is negative): what follows from it is computed
 * again and not kept in registers, of which the products want all. */
DEVICE int anew(int a, int turn)
{
    return a ^ forgotten(turn) >> 31;
}

/* A Philox call has the 16 bytes of a 4x4 set, of which two lanes, 4 apart, have 8 elements each: the even one
 * draws for the first of the two 16x16 blocks, the odd one for the second, and both give each other half. bits[block][i]:
 * what this lane has of them. q16, k16: of the first block; the second is one further in the direction ROWS_ARE_KEYS and
 * M say. */
struct drop_bytes {
    u32 w[2][2];
};
template <bool ROWS_ARE_KEYS>
DEVICE drop_bytes draw(u32 seed, u32 site, u32 step, u32 bh, int q16, int k16, int lane)
{
    int odd = lane / 4 % 2, of_row = lane / 8, of_column = lane % 4;
    if ((M == 2) == ROWS_ARE_KEYS)
        k16 += odd;
    else
        q16 += odd;
    words r = ROWS_ARE_KEYS ? dropout_attention(seed, site, step, bh, q16, k16, of_column, of_row)
                            : dropout_attention(seed, site, step, bh, q16, k16, of_row, of_column);
    u32 mine[2], theirs[2];
    if (ROWS_ARE_KEYS) { /* bytes e and e + 2 of each word: of two words, those of keys g and g+8 */
        u32 even = 0x6420, uneven = 0x7531;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            mine[i] = __byte_perm(r.w[2 * i], r.w[2 * i + 1], odd ? uneven : even);
            theirs[i] = __byte_perm(r.w[2 * i], r.w[2 * i + 1], odd ? even : uneven);
        }
    } else { /* words e and e + 2: of queries g and g+8 */
#pragma unroll
        for (int i = 0; i < 2; i++) {
            mine[i] = odd ? r.w[2 * i + 1] : r.w[2 * i];
            theirs[i] = odd ? r.w[2 * i] : r.w[2 * i + 1];
        }
    }
    drop_bytes d;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 other = __shfl_xor_sync(~0u, theirs[i], 4);
        d.w[0][i] = odd ? other : mine[i];
        d.w[1][i] = odd ? mine[i] : other;
    }
    return d;
}
/* Of element [m][n][i] of the scores. */
template <bool ROWS_ARE_KEYS> DEVICE u32 drop_byte(const drop_bytes &d, int m, int n, int i)
{
    int block = M == 2 ? m : n / 2, right = n % 2, column = i % 2, row = i / 2;
    return ROWS_ARE_KEYS ? d.w[block][right] >> (8 * (2 * column + row)) & 255
                         : d.w[block][row] >> (8 * (2 * right + column)) & 255;
}
