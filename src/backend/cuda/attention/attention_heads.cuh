/* attention_heads.cuh - shared by the tensor-core attention backward kernels: a block's head, its
 * position in packed rows, dropout's bytes. Constants: HEAD_SIZE, GROUP, M. One call of
 * random_bytes serves two 16x16 blocks: the second block is below the first if M is 2, and to the
 * right of the first if M is 1. */
#pragma once
#include "attention_random.cuh"
#include "mma.cuh"

/* PARTS: what a launch of a kernel over keys computes. Registers cannot hold both dk and dv if the
 * head size is over 128. Then one launch computes dv with 2 matmuls and another launch computes dk
 * with 3, instead of one launch with 4 matmuls. */
enum { DKV, DV, DK };

/* The number KV of key heads and of value heads; a row of packed q, k, v has (GROUP + 2) KV heads.
 */
DEVICE int kv_heads(int H)
{
    return H / GROUP;
}
/* packed_row: elements of a row of packed q, k, v. keys_at, values_at: offsets of key head kv and
 * value head kv in such a row. */
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

/* The block's head, counted over all sequences. Grid (concurrent heads, blocks of a head, sets of
 * concurrent heads). Concurrent heads fit into L2. The longest blocks come first, so that no long
 * block runs alone at the end. */
DEVICE int head_here()
{
    return opaque(blockIdx.z) * gridDim.x + blockIdx.x;
}

/* Returns a. The compiler does not see that the result is the same in every turn (turn >= 0), so it
 * recomputes values from it instead of keeping them in registers, which the matmuls need. */
DEVICE int opaque_in_turn(int a, int turn)
{
    return a ^ opaque(turn) >> 31;
}

/* Dropout's bytes of this warp's next two 16x16 blocks, of which (q16, k16) is the first. */
template <bool ROWS_ARE_KEYS>
DEVICE drop_bytes random_bytes(u32 seed, u32 site, u32 step, u32 bh, int q16, int k16, int lane)
{
    return random_blocks<ROWS_ARE_KEYS, M == 2>(seed, site, step, bh, q16, k16, lane);
}
/* Dropout's byte of element [m][n][i] of scores. */
template <bool ROWS_ARE_KEYS> DEVICE int drop_byte(const drop_bytes &d, int m, int n, int i)
{
    int block = M == 2 ? m : n / 2, right = n % 2, column = i % 2, row = i / 2;
    return ROWS_ARE_KEYS ? byte_at(d.w[block][right], 2 * column + row)
                         : byte_at(d.w[block][row], 2 * right + column);
}
