/* attention_heads.cuh - what the texts of attention's backward on tensor cores share: which head a block has, where it lies,
 * dropout's bytes. Constants: HEAD_SIZE, GROUP; M, 2 or 1: the two blocks of 16x16 that bytes are drawn for stand below one
 * another, or beside one another. */
#pragma once
#include "attention_draw.cuh"
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

/* Dropout's bytes of this warp's next two blocks of 16x16; q16, k16: of the first. */
template <bool ROWS_ARE_KEYS>
DEVICE drop_bytes draw(u32 seed, u32 site, u32 step, u32 bh, int q16, int k16, int lane)
{
    return draw_blocks<ROWS_ARE_KEYS, M == 2>(seed, site, step, bh, q16, k16, lane);
}
/* Of element [m][n][i] of the scores. */
template <bool ROWS_ARE_KEYS> DEVICE int drop_byte(const drop_bytes &d, int m, int n, int i)
{
    int block = M == 2 ? m : n / 2, right = n % 2, column = i % 2, row = i / 2;
    return ROWS_ARE_KEYS ? byte_at(d.w[block][right], 2 * column + row)
                         : byte_at(d.w[block][row], 2 * right + column);
}
