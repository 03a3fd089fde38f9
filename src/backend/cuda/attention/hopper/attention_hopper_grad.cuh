/* attention_hopper_grad.cuh - shared by the sm_90a attention backward kernels: layout of rows in
 * shared memory, matmuls over them, distribution of items, dropout.
 *
 * Constants: HEAD_SIZE (16, 32, 64, 96, 128, 192, 256), GROUP (query heads per key and value head),
 * CAUSAL, DROPOUT, CONSUMERS (compute warpgroups), TILE_ROWS (rows of a tile of the other side),
 * STAGES (tiles in shared memory), ITEM_STAGES (items whose own rows are in shared memory), AHEAD
 * (when S of the next tile starts: 2 before P of this tile, 1 after it, 0 in the next tile), LATE
 * (the last matmul of a tile ends in the next tile).
 *
 * A block is CONSUMERS warpgroups and a producer warpgroup, which requests all copies. A consumer
 * owns 64 rows (queries in one kernel, keys in the other) and walks over tiles of the other side in
 * a ring of stages; consumers synchronize only through this ring. An item is BLOCK rows of a head.
 */
#pragma once
#include "hopper.cuh"

enum {
    D = HEAD_SIZE,
    WIDE = D > 128, /* registers hold the sums of only one gradient; shared memory, few tiles */
    M = 1, /* for attention_heads.cuh */
    PANEL = D % 64 == 0 ? 64 : D % 32 == 0 ? 32 : 16, /* columns */
    SWIZZLE = PANEL == 64 ? SWIZZLE_128B : PANEL == 32 ? SWIZZLE_64B : SWIZZLE_32B,
    PANELS = D / PANEL, PITCH = 2 * PANEL, /* bytes of a panel's row */
    OWN = 64, BLOCK = OWN * CONSUMERS, TILE = TILE_ROWS,
    WARPGROUP = 128, THREADS = WARPGROUP * (CONSUMERS + 1),
    OWN_BYTES = 2 * D * OWN, TILE_BYTES = 2 * D * TILE,
    STATS = 64,                              /* rows with log-sum-exp times log2 e, and delta */
    STATS_BYTES = 2 * STATS * 4,
    ARRIVALS = CONSUMERS * WARPGROUP / WARP, /* each warp arrives when it has read a stage */
    PRODUCER_REGISTERS = CONSUMERS == 3 ? 32 : 24,
    CONSUMER_REGISTERS = CONSUMERS == 4 ? 120 : CONSUMERS == 3 ? 160 : 240,
};

#include "attention_heads.cuh"

typedef float scores[TILE / 2];            /* 64 x TILE, in wgmma's layout */
typedef float sums[D / 2];                 /* 64 x D */
typedef u32 kept_scores[TILE / 16][4];     /* a left operand 64 x TILE */

extern __shared__ __align__(1024) u8 shared_memory[];

/* The address of shared memory, rounded up to a multiple of 1024. */
DEVICE u32 shared_base()
{
    return (shared_address(shared_memory) + 1023) & ~1023u;
}

/* s = a b^T. a: own rows; b: the rows of a tile; both in panels. */
DEVICE void rows_by_rows(scores &s, u32 own, u32 tile)
{
    u64 a = wgmma_descriptor<SWIZZLE>(own, 16, 8 * PITCH),
        b = wgmma_descriptor<SWIZZLE>(tile, 16, 8 * PITCH);
    UNROLL for (int k = 0; k < D / 16; k++) {
        int panel = k * 16 / PANEL, bytes = k * 32 % PITCH;
        wgmma_ss<TILE, 0, 0>(s, a + (panel * OWN * PITCH + bytes) / 16,
                             b + (panel * TILE * PITCH + bytes) / 16, k > 0);
    }
}
/* sum += a b; b: the rows of a tile. */
DEVICE void add_by_columns(sums &sum, const kept_scores &a, u32 tile)
{
    u64 b = wgmma_descriptor<SWIZZLE>(tile, TILE * PITCH, 8 * PITCH);
    UNROLL for (int k = 0; k < TILE / 16; k++)
        wgmma_rs<D, 1>(sum, a[k], b + k * 16 * PITCH / 16, true);
}
DEVICE void pack(kept_scores &a, const scores &s)
{
    UNROLL for (int i = 0; i < TILE / 4; i++) a[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
}
DEVICE void clear(sums &sum)
{
    UNROLL for (int i = 0; i < D / 2; i++) sum[i] = 0;
}

/* Called by one thread: copies ROWS rows of a head, from `first` on, panel by panel. */
template <int ROWS>
DEVICE void load_rows(u32 to, const tensor_map *map, u32 barrier, int head, int first, int b)
{
    UNROLL for (int p = 0; p < PANELS; p++)
        tma_load(to + p * ROWS * PITCH, map, barrier, p * PANEL, head, first, b, 0);
}
/* Stores a warpgroup's scaled sums to its 64 rows in shared memory, which are no longer read. */
DEVICE void keep_rows(u32 to, const sums &sum, float scale, int thread)
{
    int warp = thread / WARP, lane = thread % WARP, row = 16 * warp + lane % 16;
    UNROLL for (int j = 0; j < D / 16; j++) {
        u32 r[4];
        UNROLL for (int i = 0; i < 4; i++)
            r[i] = pack_bf16(sum[8 * j + 2 * i] * scale, sum[8 * j + 2 * i + 1] * scale);
        int panel = 16 * j / PANEL, chunk = 2 * j % (PANEL / 8) + lane / 16;
        stmatrix_x4(to + panel * OWN * PITCH + panel_chunk<SWIZZLE>(row, chunk), r);
    }
}
/* Called by one thread: stores the rows that keep_rows has written to memory, except rows outside
 * the sequence. */
DEVICE void store_rows(u32 from, const tensor_map *map, int head, int first, int b)
{
    UNROLL for (int p = 0; p < PANELS; p++)
        tma_store(map, from + p * OWN * PITCH, p * PANEL, head, first, b, 0);
}
/* A warpgroup's thread 0 releases an item's rows once its stores have read shared memory. Called
 * during the next item's first matmuls, to hide the time, unless these matmuls need the rows. */
DEVICE void release_rows(u32 barrier, int thread)
{
    if (thread == 0) {
        tma_store_wait_read<0>();
        mbarrier_arrive(barrier);
    }
}

/* Items: blocks of rows of all heads, the longest first; equally long items of all heads are
 * adjacent. (Sections of heads that fit into L2 do not help on an H200: blocks of the same rank
 * read the same rows at about the same time, and sections end unevenly.) */
struct item {
    int head, rank; /* rank 0 is the longest */
};
DEVICE item item_of(int i, int heads)
{
    item r = {i % heads, i / heads};
    return r;
}
/* The block's item in a round. Even rounds count the blocks upwards, odd rounds downwards. */
DEVICE int item_in_round(int round)
{
    return round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

/* Which 64 rows of an item a warpgroup has. Rows at one end have more tiles, so warpgroups swap
 * positions every round; with enough stages none then waits for another at the end of an item. */
DEVICE int part_in_round(int group, int round)
{
    return STAGES > 2 && round % 2 ? CONSUMERS - 1 - group : group;
}

template <int N> struct ring {
    int stage, phase;
    __device__ __forceinline__ void next()
    {
        stage++;
        if (stage == N) stage = 0, phase ^= 1;
    }
};

/* The stage of a round's item. */
DEVICE ring<ITEM_STAGES> ring_of(int round)
{
    ring<ITEM_STAGES> r = {round % ITEM_STAGES, round / ITEM_STAGES % 2};
    return r;
}

/* Signals that a warp has read a stage. */
DEVICE void release(u32 barrier, int lane)
{
    __syncwarp();
    if (lane == 0) mbarrier_arrive(barrier);
}
