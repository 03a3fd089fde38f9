/* attention_hopper_grad.cuh - what the texts of attention's backward for sm_90a share: how rows lie in shared memory, the
 * products over them, who has which item, dropout.
 *
 * Constants: HEAD_SIZE (16, 32, 64, 96, 128), GROUP (heads of queries that share one of keys and values), CAUSAL, DROPOUT,
 * CONSUMERS (warpgroups that compute), TILE_ROWS (rows that they walk over at a time), STAGES (tiles in shared memory),
 * ITEM_STAGES (items whose own rows are there), AHEAD (S of the next tile is begun: 1: once P of this one is computed, 2: before
 * that), LATE (a tile's last products end under those of the next one).
 *
 * A block is CONSUMERS warpgroups and one more, of which one thread asks for all copies. A warpgroup owns 64 rows (of queries
 * in one text, of keys in the other) and walks over tiles of the others, which come through a ring of stages; it
 * meets the other warpgroups nowhere but there. An item is BLOCK rows of one head. */
#pragma once
#include "hopper.cuh"

enum {
    D = HEAD_SIZE,
    M = 1, /* of attention_heads.cuh: bytes are drawn for two blocks of 16x16 beside one another */
    PANEL = D % 64 == 0 ? 64 : D % 32 == 0 ? 32 : 16, /* columns */
    SWIZZLE = PANEL == 64 ? SWIZZLE_128B : PANEL == 32 ? SWIZZLE_64B : SWIZZLE_32B,
    PANELS = D / PANEL,
    PITCH = 2 * PANEL, /* bytes of a row of a panel */
    OWN = 64,
    BLOCK = OWN * CONSUMERS,
    TILE = TILE_ROWS,
    WARPGROUP = 128,
    THREADS = WARPGROUP * (CONSUMERS + 1),
    OWN_BYTES = 2 * D * OWN,
    TILE_BYTES = 2 * D * TILE,
    STATS = 64,                              /* rows whose statistics lie together: log-sum-exp in bits, then delta */
    STATS_BYTES = 2 * STATS * 4,
    ARRIVALS = CONSUMERS * WARPGROUP / WARP, /* a warp at a time says that a stage is read */
    PRODUCER_REGISTERS = CONSUMERS == 3 ? 32 : 24,
    CONSUMER_REGISTERS = CONSUMERS == 4 ? 120 : CONSUMERS == 3 ? 160 : 240,
};

#include "attention_heads.cuh"

typedef float scores[TILE / 2];            /* 64 x TILE, as products have it */
typedef float sums[D / 2];                 /* 64 x D */
typedef u32 kept_scores[TILE / 16][4];     /* a left operand 64 x TILE */

extern __shared__ __align__(1024) u8 shared_memory[];

/* Shared memory begins at a multiple of 1024. */
DEVICE u32 shared_base()
{
    return (shared_address(shared_memory) + 1023) & ~1023u;
}

/* s = a b^T: own rows by the rows of a tile; both panel after panel. */
DEVICE void rows_by_rows(scores &s, u32 own, u32 tile)
{
    u64 a = wgmma_descriptor<SWIZZLE>(own, 16, 8 * PITCH), b = wgmma_descriptor<SWIZZLE>(tile, 16, 8 * PITCH);
#pragma unroll
    for (int k = 0; k < D / 16; k++) {
        int panel = k * 16 / PANEL, bytes = k * 32 % PITCH;
        wgmma_ss<TILE, 0, 0>(s, a + (panel * OWN * PITCH + bytes) / 16, b + (panel * TILE * PITCH + bytes) / 16, k > 0);
    }
}
/* sum += a b, b the rows of a tile. */
DEVICE void add_by_columns(sums &sum, const kept_scores &a, u32 tile)
{
    u64 b = wgmma_descriptor<SWIZZLE>(tile, TILE * PITCH, 8 * PITCH);
#pragma unroll
    for (int k = 0; k < TILE / 16; k++) wgmma_rs<D, 1>(sum, a[k], b + k * 16 * PITCH / 16, true);
}
DEVICE void pack(kept_scores &a, const scores &s)
{
#pragma unroll
    for (int i = 0; i < TILE / 4; i++) a[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
}
DEVICE void clear(sums &sum)
{
#pragma unroll
    for (int i = 0; i < D / 2; i++) sum[i] = 0;
}

/* Copies of the rows first ... of a head, panel after panel, by one thread. */
template <int ROWS> DEVICE void load_rows(u32 to, const tensor_map *map, u32 barrier, int head, int first, int b)
{
#pragma unroll
    for (int p = 0; p < PANELS; p++) tma_load(to + p * ROWS * PITCH, map, barrier, p * PANEL, head, first, b, 0);
}
/* A warpgroup's sums, scaled, to its 64 rows in shared memory; threads that read these rows are past them. */
DEVICE void keep_rows(u32 to, const sums &sum, float scale, int thread)
{
    int warp = thread / WARP, lane = thread % WARP, row = 16 * warp + lane % 16;
#pragma unroll
    for (int j = 0; j < D / 16; j++) {
        u32 r[4];
#pragma unroll
        for (int i = 0; i < 4; i++) r[i] = pack_bf16(sum[8 * j + 2 * i] * scale, sum[8 * j + 2 * i + 1] * scale);
        int panel = 16 * j / PANEL, chunk = 2 * j % (PANEL / 8) + lane / 16;
        stmatrix_x4(to + panel * OWN * PITCH + panel_chunk<SWIZZLE>(row, chunk), r);
    }
}
/* From there to memory, by one thread; rows outside of the sequence are not written. */
DEVICE void store_rows(u32 from, const tensor_map *map, int head, int first, int b)
{
#pragma unroll
    for (int p = 0; p < PANELS; p++) tma_store(map, from + p * OWN * PITCH, p * PANEL, head, first, b, 0);
}
/* Once its stores have read shared memory, a warpgroup gives up an item's rows; by its thread 0. They take a while, so it does so
 * under the first products of the next item, where that does not wait for these rows. */
DEVICE void give_up(u32 barrier, int thread)
{
    if (thread == 0) {
        tma_store_wait_read<0>();
        mbarrier_arrive(barrier);
    }
}

/* Items: blocks of rows of all heads, the longest first, and of equal ones all heads beside one another. (Only so many heads at a time as fit into the second cache: of no use on an H200, where blocks of the same rank read
 * the same rows at about the same time; its sections end unevenly.) */
struct item {
    int head, rank; /* rank 0 is longest */
};
DEVICE item item_of(int i, int heads)
{
    item r = {i % heads, i / heads};
    return r;
}
/* A block's item, at the front of one round and at the end of the next. */
DEVICE int item_in_round(int round)
{
    return round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

/* Which 64 of an item's rows a warpgroup has. Those at one end have a tile more for each 64 between: so warpgroups change places
 * from round to round, and none has to wait for another at the end of an item, as long as stages are between them. */
DEVICE int part_in_round(int group, int round)
{
    return STAGES > 2 && round % 2 ? CONSUMERS - 1 - group : group;
}

/* A place in a ring of N stages. */
template <int N> struct ring {
    int stage, phase;
    __device__ __forceinline__ void next()
    {
        stage++;
        if (stage == N) stage = 0, phase ^= 1;
    }
};

/* The place of a round's item. */
DEVICE ring<ITEM_STAGES> ring_of(int round)
{
    ring<ITEM_STAGES> r = {round % ITEM_STAGES, round / ITEM_STAGES % 2};
    return r;
}

/* A warp has read a stage. */
DEVICE void release(u32 barrier, int lane)
{
    __syncwarp();
    if (lane == 0) mbarrier_arrive(barrier);
}
