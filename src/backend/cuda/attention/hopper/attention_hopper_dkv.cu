/* attention_hopper_dkv.cu - attention backward for sm_90a, second kernel: dk and dv.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), stats from attention_hopper_dq.cu or, for WIDE heads,
 * attention_hopper_sums.cu -> the columns of dqkv from C on.
 *     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dY^T, dS^T = P^T (dP^T - delta),
 *     dV += P^T dY, dK += dS^T Q.
 * A warpgroup has 64 keys and walks over the queries that see them, first to last, for each of the
 * GROUP query heads in turn. P and dS stay in registers as left operands; they are 0 for queries
 * from T on.
 *
 * Bound by tensor cores: 4 matmuls of 2 D clocks for 64 x 64 pairs. Reads and writes 8 D bytes a
 * row, and rereads queries for each item from L2. Constants: see attention_hopper_grad.cuh;
 * TILE_ROWS is 64. Shared memory has STAGES tiles of Q and statistics, DY_STAGES tiles of dY, and K
 * and V of ITEM_STAGES items, which dK and dV later overwrite.
 *
 * PARTS (attention_heads.cuh): WIDE heads have a launch for dV and one for dK. Q and dY then have
 * separate rings, since S reads only Q and dP only dY. */
#include "attention_hopper_keys.cuh"
#include "attention_hopper_counter.cuh"
static_assert(PARTS == DKV ? DY_STAGES == STAGES : !AHEAD && !(PARTS == DV && LATE), "");
/* Between heads a warpgroup waits for up to CONSUMERS - 1 tiles, which it skips, while it still
 * holds the stages of AHEAD and LATE. */
static_assert(STAGES > AHEAD + LATE + (GROUP > 1 && CAUSAL ? CONSUMERS - 1 : 0),
              "a warpgroup would wait for itself");

enum {
    BLOCK_BYTES = CONSUMERS * OWN_BYTES,
    ITEM_BYTES = (PARTS == DV ? 1 : 2) * BLOCK_BYTES, /* K, V */
    AT_TILES = ITEM_STAGES * ITEM_BYTES,
    AT_STATS = AT_TILES + (STAGES + DY_STAGES) * TILE_BYTES,
    AT_BARRIERS = AT_STATS + STAGES * STATS_BYTES,
    ITEM_FULL = AT_BARRIERS, ITEM_FREE = ITEM_FULL + 8 * ITEM_STAGES,
    QUERIES_FULL = ITEM_FREE + 8 * ITEM_STAGES, /* and statistics */
    DY_FULL = QUERIES_FULL + 8 * STAGES, FREE = DY_FULL + 8 * DY_STAGES,
    DY_FREE = FREE + 8 * STAGES,          /* PARTS == DKV: unused, FREE covers dY */
    NUMBER_FULL = DY_FREE + 8 * DY_STAGES, /* item numbers */
    AT_NUMBERS = NUMBER_FULL + 8 * ITEM_STAGES,
};

/* Shared memory of a tile's Q and dY, at their stages. */
DEVICE u32 query_tile(u32 base, int stage)
{
    return base + AT_TILES + stage * (PARTS == DKV ? 2 : 1) * TILE_BYTES;
}
DEVICE u32 dy_tile(u32 base, int stage)
{
    return query_tile(base, PARTS == DKV ? stage : STAGES + stage) +
           (PARTS == DKV ? TILE_BYTES : 0);
}

struct sizes {
    int T, H, heads, items, tiles; /* heads: all key heads; tiles: of queries */
};
DEVICE sizes sizes_of(int T, int H, int heads, int items)
{
    sizes s = {T, H, heads, items, ceil_div(T, TILE)};
    return s;
}
/* Where the item number of a round is stored. The producer takes an item only when there is space
 * for its rows; if it took items earlier, other blocks might be idle at the end. */
DEVICE volatile int *number_of(u32 base, int round)
{
    return (volatile int *)(shared_memory + (base - shared_address(shared_memory)) + AT_NUMBERS) +
           ring_of(round).stage;
}
DEVICE void wait_for_number(u32 base, int round)
{
    mbarrier_wait(base + NUMBER_FULL + 8 * ring_of(round).stage, ring_of(round).phase);
}
/* One thread takes items and requests their rows. It does not wait for the first kernel, because K
 * and V do not depend on that kernel. */
DEVICE void produce_rows(u32 base, const sizes &s, const tensor_map *rows)
{
    ring<ITEM_STAGES> at = {0, 1};
    int KV = s.H / GROUP;
    for (int round = 0;; round++, at.next()) {
        mbarrier_wait(base + ITEM_FREE + 8 * at.stage, at.phase);
        int i = round ? next_item() : blockIdx.x;
        *number_of(base, round) = i;
        mbarrier_arrive(base + NUMBER_FULL + 8 * at.stage);
        if (i >= s.items) break;
        item it = item_of(i, s.heads);
        int b = it.head / KV, kv = it.head - b * KV, first = it.rank * BLOCK;
        u32 to = base + at.stage * ITEM_BYTES, full = base + ITEM_FULL + 8 * at.stage;
        mbarrier_expect(full, ITEM_BYTES);
        for (int group = 0; group < CONSUMERS; group++, to += OWN_BYTES) {
            int mine = first + OWN * part_in_round(group, round);
            load_rows<OWN>(to, rows, full, s.H + kv, mine, b);
            if (PARTS != DV)
                load_rows<OWN>(to + BLOCK_BYTES, rows, full, s.H + KV + kv, mine, b);
        }
    }
    finish_items();
}
/* One thread requests tiles of QUERIES, with their statistics, or of DY, or both. */
template <bool QUERIES, bool DY>
DEVICE void produce_tiles(u32 base, const sizes &s, const tensor_map *rows, const tensor_map *dy,
                          const tensor_map *stats)
{
    ring<QUERIES ? STAGES : DY_STAGES> at = {0, 1};
    int KV = s.H / GROUP;
    dependents_wait();
    for (int round = 0;; round++) {
        wait_for_number(base, round);
        int i = *number_of(base, round);
        if (i >= s.items) break;
        item it = item_of(i, s.heads);
        int b = it.head / KV, h = (it.head - b * KV) * GROUP;
#pragma unroll 1 /* registers are scarce here */
        do {
            int tile = first_tile(it.rank * BLOCK);
            int strip = (b * s.H + h) * s.tiles; /* of statistics */
#pragma unroll 1
            for (; tile < s.tiles; tile++, at.next()) {
                mbarrier_wait(base + (QUERIES ? FREE : DY_FREE) + 8 * at.stage, at.phase);
                u32 full = base + QUERIES_FULL + 8 * at.stage;
                if (QUERIES) {
                    mbarrier_expect(full, TILE_BYTES + STATS_BYTES);
                    load_rows<TILE>(query_tile(base, at.stage), rows, full, h, tile * TILE, b);
                    tma_load(base + AT_STATS + at.stage * STATS_BYTES, stats, full, 0,
                             strip + tile, 0, 0, 0);
                }
                if (!DY) continue;
                full = base + DY_FULL + 8 * at.stage;
                mbarrier_expect(full, TILE_BYTES);
                load_rows<TILE>(dy_tile(base, at.stage), dy, full, h, tile * TILE, b);
            }
        } while (++h % GROUP);
    }
}

/* State of a warpgroup: a tile of queries of a head, and its stage. */
struct position {
    ring<STAGES> at;
    ring<DY_STAGES> dy; /* if PARTS != DKV: the stage of the next dY that is needed */
    /* member: of the GROUP query heads. before: the stage of the previous tile, if PARTS == DV of
     * its dY; -1 at the item's first tile. */
    int tile, member, before;
};
/* Starts S of the tile at a stage. */
DEVICE void begin(scores &s, const keys &own, const ring<STAGES> &at)
{
    mbarrier_wait(own.base + QUERIES_FULL + 8 * at.stage, at.phase);
    wgmma_fence();
    rows_by_rows(s, own.k, query_tile(own.base, at.stage));
}
DEVICE ring<DY_STAGES> dy_of(const position &p)
{
    ring<DY_STAGES> r = {p.at.stage, p.at.phase};
    return PARTS == DKV ? r : p.dy;
}
DEVICE void release_dy(const keys &own, int stage)
{
    if (PARTS != DKV) release(own.base + DY_FREE + 8 * stage, own.thread % WARP);
}
/* Skips tiles of queries before those that see the warpgroup's keys. */
DEVICE void skip(const keys &own, position &p)
{
    for (; p.tile < own.first_tile; p.tile++, p.at.next()) {
        mbarrier_wait(own.base + QUERIES_FULL + 8 * p.at.stage, p.at.phase);
        ring<DY_STAGES> dy = dy_of(p);
        mbarrier_wait(own.base + DY_FULL + 8 * dy.stage, dy.phase);
        release(own.base + FREE + 8 * p.at.stage, own.thread % WARP);
        release_dy(own, dy.stage);
        p.dy.next();
    }
}
/* Advances to the next tile, which may belong to the next head. */
DEVICE void advance(const keys &own, position &p)
{
    p.at.next();
    if (++p.tile < own.tiles || GROUP == 1 || ++p.member == GROUP) return;
    p.tile = own.item_tile;
    skip(own, p);
}

/* Releases the previous item's rows. */
DEVICE void release_last(const keys &own)
{
    if (ITEM_STAGES > 1 && own.round > 0)
        release_rows(own.base + ITEM_FREE + 8 * ring_of(own.round - 1).stage, own.thread);
}

/* The thread's part of the statistics at a stage. */
DEVICE const float *stats_at(const keys &own, int stage)
{
    return (const float *)(shared_memory + (own.base - shared_address(shared_memory)) + AT_STATS +
                           stage * STATS_BYTES) +
           own.thread % WARP % 4 * 2;
}
/* Processes a tile of queries. AHEAD: its S is complete on entry; if there is MORE, the next tile's
 * S starts once P is computed and is complete at the end. LATE: dK may be in flight at the end. */
template <bool MORE> DEVICE void step(scores &s, sums &dk, sums &dv, keys &own, position &p)
{
    scores dp, pr;
    kept_scores a, e;
    int here = p.at.stage, tile = p.tile, lane = own.thread % WARP;
    ring<DY_STAGES> of_dy = dy_of(p);
    u32 queries = query_tile(own.base, here), dy = dy_tile(own.base, of_dy.stage);
    const float *stats = stats_at(own, here);
    if (!AHEAD) {
        begin(s, own, p.at);
        wgmma_commit();
    }
#if DROPOUT
    int member = p.member;
#endif
    mbarrier_wait(own.base + DY_FULL + 8 * of_dy.stage, of_dy.phase);
    wgmma_fence();
    rows_by_rows(dp, own.v, dy);
    wgmma_commit();
    if (!AHEAD) {
        if (p.before < 0) release_last(own);
        wgmma_wait<1>();
        wgmma_hold(s);
    }
    /* The previous tile's dK ended before this tile's S. */
    if (PARTS == DK && LATE && p.before >= 0) release(own.base + FREE + 8 * p.before, lane);
    if (CAUSAL && tile * TILE < own.first + OWN) mask(s, own, tile);
    probabilities(pr, s, own, stats);
#if DROPOUT
    mark_dropped(pr, own, member, tile);
#endif
    if (PARTS == DKV) pack_kept(a, pr);
    if (AHEAD && MORE) {
        advance(own, p);
        begin(s, own, p.at);
        wgmma_commit();
    }
    if constexpr (PARTS == DKV) {
        wgmma_fence();
        add_by_columns(dv, a, dy);
        wgmma_commit();
    }
    wgmma_wait<(PARTS == DKV) + (AHEAD && MORE)>();
    wgmma_hold(dp);
    release_dy(own, of_dy.stage);
    p.dy.next();
    if (PARTS == DKV && LATE && p.before >= 0) release(own.base + FREE + 8 * p.before, lane);
    p.before = here;
    gradients(pr, dp, own, stats);
    pack(e, pr);
    wgmma_fence();
    add_by_columns(dk, e, queries);
    wgmma_commit();
    /* Waits for dV, too, which reads the registers that the next P is packed into. */
    wgmma_wait<LATE>();
    if (AHEAD && MORE) wgmma_hold(s);
    if (PARTS == DKV) wgmma_hold(dv);
    if (LATE) return;
    wgmma_hold(dk);
    release(own.base + FREE + 8 * here, lane);
}

/* Adds a tile to dV. Its S is complete on entry; the previous tile's dV, with dY at the stage
 * `before`, may be in flight. If MORE, at the end the next tile's S is complete, dV in flight. */
template <bool MORE> DEVICE void step_values(scores &s, sums &dv, keys &own, position &p)
{
    kept_scores a;
    ring<DY_STAGES> dy = p.dy;
    if (CAUSAL && p.tile * TILE < own.first + OWN) mask(s, own, p.tile);
    probabilities(s, s, own, stats_at(own, p.at.stage));
#if DROPOUT
    mark_dropped(s, own, p.member, p.tile);
#endif
    release(own.base + FREE + 8 * p.at.stage, own.thread % WARP);
    wgmma_wait<0>();
    wgmma_hold(dv);
    if (p.before >= 0) release_dy(own, p.before);
    p.before = dy.stage;
    p.dy.next();
    pack_kept(a, s);
    if (MORE) {
        advance(own, p);
        begin(s, own, p.at);
        wgmma_commit();
    }
    mbarrier_wait(own.base + DY_FULL + 8 * dy.stage, dy.phase);
    wgmma_fence();
    add_by_columns(dv, a, dy_tile(own.base, dy.stage));
    wgmma_commit();
    if (!MORE) return;
    wgmma_wait<1>();
    wgmma_hold(s);
}
/* Processes `left` tiles for dV alone. */
DEVICE void walk_values(sums &dv, keys &own, position &p, int left)
{
    scores s;
    begin(s, own, p.at);
    wgmma_commit();
    release_last(own);
    wgmma_wait<0>();
    wgmma_hold(s);
#pragma unroll 1
    for (; left > 1; left--) step_values<true>(s, dv, own, p);
    step_values<false>(s, dv, own, p);
    wgmma_wait<0>();
    wgmma_hold(dv);
    release_dy(own, p.before);
    advance(own, p);
    p.before = -1;
}

DEVICE void walk(sums &dk, sums &dv, keys &own, position &p, int left)
{
    if constexpr (PARTS == DV) return walk_values(dv, own, p, left);
    scores s;
    if (AHEAD) {
        begin(s, own, p.at);
        wgmma_commit();
        release_last(own);
        wgmma_wait<0>();
        wgmma_hold(s);
#pragma unroll 1
        for (; left > 1; left--) step<true>(s, dk, dv, own, p);
        step<false>(s, dk, dv, own, p);
        advance(own, p);
    } else {
#pragma unroll 1
        for (; left > 0; left--) {
            step<false>(s, dk, dv, own, p);
            advance(own, p);
        }
    }
    if (LATE) {
        wgmma_wait<0>();
        wgmma_hold(dk);
        if (PARTS == DKV) wgmma_hold(dv);
        release(own.base + FREE + 8 * p.before, own.thread % WARP);
    }
    p.before = -1;
}

DEVICE void consume(const sizes &s, int group, keys &own, const tensor_map *map, float scale,
                    float drop_scale)
{
    position p = {{0, 0}, {0, 0}, 0, 0, -1};
    int KV = s.H / GROUP;
    own.tiles = s.tiles;
    for (int round = 0;; round++) {
        wait_for_number(own.base, round);
        int i = (int)warp_word((const volatile u32 *)number_of(own.base, round));
        if (i >= s.items) break;
        ring<ITEM_STAGES> of = ring_of(round);
        own.round = round;
        item it = item_of(i, s.heads);
        int b = it.head / KV, kv = it.head - b * KV, first = it.rank * BLOCK;
        own.first = first + OWN * part_in_round(group, round);
        own.item_tile = first_tile(first);
        own.first_tile = own.first < s.T ? first_tile(own.first) : s.tiles;
        own.k = own.base + of.stage * ITEM_BYTES + group * OWN_BYTES;
        own.v = own.k + BLOCK_BYTES;
#if DROPOUT
        own.head = b * s.H + kv * GROUP;
#endif
        mbarrier_wait(own.base + ITEM_FULL + 8 * of.stage, of.phase);
        p.tile = own.item_tile;
        p.member = 0;
        skip(own, p);
        if (own.first < s.T) {
            sums dk, dv;
            clear(dk);
            clear(dv);
            walk(dk, dv, own, p, GROUP * (s.tiles - own.first_tile));
            named_barrier_sync(1 + group, WARPGROUP); /* all have read K and V */
            if (PARTS != DV) keep_rows(own.k, dk, scale, own.thread);
            if (PARTS == DKV) keep_rows(own.v, dv, drop_scale, own.thread);
            if (PARTS == DV) keep_rows(own.k, dv, drop_scale, own.thread);
            fence_async();
        } else {
            for (int member = 1; member < GROUP; member++) {
                p.tile = own.item_tile;
                skip(own, p);
            }
            release_last(own);
        }
        named_barrier_sync(1 + group, WARPGROUP);
        if (own.first < s.T && own.thread == 0) {
            if (PARTS != DV) store_rows(own.k, map, s.H + kv, own.first, b);
            if (PARTS != DK)
                store_rows(PARTS == DKV ? own.v : own.k, map, s.H + KV + kv, own.first, b);
            tma_store_commit();
        }
        if (ITEM_STAGES == 1) release_rows(own.base + ITEM_FREE, own.thread);
    }
    if (own.thread == 0) tma_store_wait_read<0>();
}

KERNEL_MIN(THREADS, 1)
attention_hopper_dkv(const __grid_constant__ tensor_map rows, const __grid_constant__ tensor_map dy,
                     const __grid_constant__ tensor_map dqkv,
                     const __grid_constant__ tensor_map stats, const int *step_number, float scale,
                     int T, int H, int heads, int items, u32 seed, u32 site, int threshold)
{
    u32 base = shared_base();
    sizes s = sizes_of(T, H, heads, items);
    int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    if (threadIdx.x == CONSUMERS * WARPGROUP) {
        tma_prefetch_map(&rows);
        tma_prefetch_map(&dy);
        tma_prefetch_map(&dqkv);
        tma_prefetch_map(&stats);
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < ITEM_STAGES; i++) {
            mbarrier_init(base + ITEM_FULL + 8 * i, 1);
            mbarrier_init(base + ITEM_FREE + 8 * i, CONSUMERS);
            mbarrier_init(base + NUMBER_FULL + 8 * i, 1);
        }
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(base + QUERIES_FULL + 8 * i, 1);
            mbarrier_init(base + FREE + 8 * i, ARRIVALS);
        }
        for (int i = 0; i < DY_STAGES; i++) {
            mbarrier_init(base + DY_FULL + 8 * i, 1);
            if (PARTS != DKV) mbarrier_init(base + DY_FREE + 8 * i, ARRIVALS);
        }
        fence_barrier_init();
    }
    __syncthreads();
    if (PARTS == DV) dependents_start();
    if (group == CONSUMERS) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) produce_rows(base, s, &rows);
        if (threadIdx.x == CONSUMERS * WARPGROUP + WARP)
            produce_tiles<true, PARTS == DKV>(base, s, &rows, &dy, &stats);
        if (PARTS != DKV && threadIdx.x == CONSUMERS * WARPGROUP + 2 * WARP)
            produce_tiles<false, true>(base, s, &rows, &dy, &stats);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        keys own;
        float drop_scale = 1;
        own.base = base;
        own.thread = threadIdx.x % WARPGROUP;
        own.factor = scale * LOG2_E;
#if DROPOUT
        drop_scale = dropout_scale(threshold);
        own.seed = seed, own.site = site, own.step = (u32)*step_number;
        own.threshold = threshold;
        own.drop_scale = drop_scale;
#endif
        consume(s, group, own, &dqkv, scale, drop_scale);
    }
}
