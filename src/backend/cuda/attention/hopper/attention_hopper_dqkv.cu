/* attention_hopper_dqkv.cu - attention backward for sm_90a in one kernel: dk, dv, sums of dq.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), stats from attention_hopper_sums.cu -> the columns of dqkv from C
 * on. Items add their keys' parts to dq, in that file's layout and in undefined order.
 *     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dY^T, dS^T = P^T (dP^T - delta),
 *     dV += P^T dY, dK += dS^T Q, dQ += dS K.
 * Two warpgroups have 64 keys each and walk over the queries that see any of these 128 keys, for
 * each of the GROUP query heads in turn. For dQ, whose rows are queries, both store dS in shared
 * memory. Heads of 128: each warpgroup multiplies a tile's dS by half of the columns of K. Heads of
 * 64: tiles come in pairs, and each warpgroup multiplies the dS of one tile by all columns of K, so
 * they synchronize once in two tiles. The results go through shared memory. A producer thread for
 * each warpgroup adds dQ to memory in bulk and stores dK and dV.
 *
 * Order of a tile's wgmma groups. Heads of 64: (dQ of the previous pair,) dP, dV, S of the next
 * tile, dK. Heads of 128: S, dP, dV, dQ of the previous tile, dK. One group is in flight while
 * threads compute P and dS and store dQ. dS is computed from P as rounded for dV, which saves
 * registers. Heads of 64 keep V in registers.
 *
 * Items come from a counter, `section` heads at a time, so that these heads' sums and rows stay in
 * L2; within a section the longest item comes first.
 *
 * Bound by shared memory (for 128 x 128 pairs 2816 clocks at D 64, 5888 at 128) and tensor cores (5
 * matmuls, 40 D clocks). The kernel takes 4500 and 7000 clocks, because each step of a warpgroup
 * depends on the one before. It does not wait for memory: without the additions to dq it is no
 * faster. Without the path of dQ through shared memory (750 and 950 clocks) it is faster, because
 * stores of threads wait while tensor cores read both operands from shared memory. So stores are
 * next to wgmma with a left operand in registers, and fences are where few wgmma are in flight.
 * HEAD_SIZE: 64 or 128; STAGES of Q, dY, statistics; ITEM_STAGES of K, V. */
#define CONSUMERS 2
#define TILE_ROWS 64
#define DROPOUT   0
#include "attention_hopper_keys.cuh"
static_assert(D == 64 || D == 128, "dQ is not divided for this head size");

enum {
    /* Tiles come in pairs, one tile for each warpgroup. PAIRS also selects code for which only
     * heads of 64 leave enough registers. */
    PAIRS = D == 64, PARTS = PAIRS ? 2 : 1,
    SLOTS = 2, /* for dS: of a pair's tiles, or of a tile and the previous one */
    PIECES = D / 64, PIECE = 64 * 64, BLOCK_BYTES = CONSUMERS * OWN_BYTES,
    ITEM_BYTES = 2 * BLOCK_BYTES, /* K, V; dV overwrites V */
    STAGE_BYTES = 2 * TILE_BYTES, DS_BYTES = 2 * BLOCK * TILE,
    DQ_BYTES = 4 * PIECE, /* of a warpgroup's dQ, and of its dK */
    AT_TILES = ITEM_STAGES * ITEM_BYTES, AT_DS = AT_TILES + STAGES * STAGE_BYTES,
    AT_DQ = AT_DS + SLOTS * DS_BYTES, AT_STATS = AT_DQ + CONSUMERS * DQ_BYTES,
    AT_BARRIERS = AT_STATS + STAGES * STATS_BYTES,
    ITEM_READY = AT_BARRIERS, /* the item's number is written */
    K_FULL = ITEM_READY + 8 * ITEM_STAGES, V_FULL = K_FULL + 8 * ITEM_STAGES,
    K_FREE = V_FULL + 8 * ITEM_STAGES, V_FREE = K_FREE + 8 * ITEM_STAGES,
    QUERIES_FULL = V_FREE + 8 * ITEM_STAGES, /* and statistics */
    DY_FULL = QUERIES_FULL + 8 * STAGES, FREE = DY_FULL + 8 * STAGES,
    DS_FREE = FREE + 8 * STAGES, /* of a pair, or of each slot */
    DQ_FULL = DS_FREE + 8 * SLOTS, /* of each warpgroup */
    DQ_FREE = DQ_FULL + 8 * CONSUMERS, ITEM_AT = DQ_FREE + 8 * CONSUMERS,
    ORDER_AT = ITEM_AT + 4 * ITEM_STAGES, /* of each warpgroup: a piece, or STOP or STORE */
    /* Named barriers of a warpgroup, for each slot: the other warpgroup has stored its dS. */
    DS_READY = 3,
};
enum { STOP = -1, STORE = -2 }; /* dK and dV of item STORE - order are complete */

struct sizes {
    int T, H, heads, section, items, tiles; /* heads: all key heads; tiles: of queries */
};
DEVICE int tiles_of(int T)
{
    return ceil_div(T, PARTS * TILE) * PARTS;
}
DEVICE sizes sizes_of(int T, int H, int heads, int section, int items)
{
    sizes s = {T, H, heads, section, items, tiles_of(T)};
    return s;
}
DEVICE item item_of(int i, const sizes &s)
{
    int ranks = ceil_div(s.T, BLOCK), section = i / (s.section * ranks),
        before = section * s.section;
    int heads = before + s.section < s.heads ? s.section : s.heads - before,
        in = i - before * ranks;
    item r = {before + in % heads, in / heads};
    return r;
}
DEVICE volatile int &word_at(u32 address)
{
    return *(volatile int *)(shared_memory + (address - shared_address(shared_memory)));
}

/* One thread takes items and requests their K and V. */
DEVICE void produce_items(u32 base, const sizes &s, const tensor_map *rows, int *counter)
{
    int KV = s.H / GROUP;
    dependents_wait();
    for (int round = 0;; round++) {
        ring<ITEM_STAGES> own = ring_of(round);
        int i = atomicAdd(counter, 1), before = own.phase ^ 1;
        u32 to = base + own.stage * ITEM_BYTES, of = base + 8 * own.stage;
        mbarrier_wait(of + K_FREE, before);
        word_at(base + ITEM_AT + 4 * own.stage) = i < s.items ? i : STOP;
        mbarrier_arrive(of + ITEM_READY);
        if (i >= s.items) return;
        item it = item_of(i, s);
        int b = it.head / KV, kv = it.head - b * KV, first = it.rank * BLOCK;
        mbarrier_expect(of + K_FULL, BLOCK_BYTES);
        for (int group = 0; group < CONSUMERS; group++)
            load_rows<OWN>(to + group * OWN_BYTES, rows, of + K_FULL, s.H + kv, first + OWN * group,
                           b);
        mbarrier_wait(of + V_FREE, before);
        mbarrier_expect(of + V_FULL, BLOCK_BYTES);
        for (int group = 0; group < CONSUMERS; group++)
            load_rows<OWN>(to + BLOCK_BYTES + group * OWN_BYTES, rows, of + V_FULL, s.H + KV + kv,
                           first + OWN * group, b);
    }
}

/* One thread requests tiles of queries. */
DEVICE void produce_tiles(u32 base, const sizes &s, const tensor_map *rows, const tensor_map *dy,
                          const tensor_map *stats)
{
    ring<STAGES> at = {0, 1};
    dependents_wait();
    for (int round = 0;; round++) {
        ring<ITEM_STAGES> of = ring_of(round);
        mbarrier_wait(base + ITEM_READY + 8 * of.stage, of.phase);
        int i = word_at(base + ITEM_AT + 4 * of.stage);
        if (i == STOP) return;
        item it = item_of(i, s);
        int first = first_tile(it.rank * BLOCK), head = it.head * GROUP, b = head / s.H,
            h = head - b * s.H;
        int strip = head * s.tiles; /* index into statistics */
#pragma unroll 1
        for (int member = 0; member < GROUP; member++, h++) {
            strip += first;
#pragma unroll 1
            for (int tile = first; tile < s.tiles; tile++, strip++, at.next()) {
                u32 stage = base + AT_TILES + at.stage * STAGE_BYTES, full = base + 8 * at.stage;
                mbarrier_wait(full + FREE, at.phase);
                mbarrier_expect(full + QUERIES_FULL, TILE_BYTES + STATS_BYTES);
                load_rows<TILE>(stage, rows, full + QUERIES_FULL, h, tile * TILE, b);
                tma_load(base + AT_STATS + at.stage * STATS_BYTES, stats, full + QUERIES_FULL, 0,
                         strip, 0, 0, 0);
                mbarrier_expect(full + DY_FULL, TILE_BYTES);
                load_rows<TILE>(stage + TILE_BYTES, dy, full + DY_FULL, h, tile * TILE, b);
            }
        }
    }
}

/* One thread for each warpgroup adds its sums to memory and stores its dK and dV. */
DEVICE void store_results(u32 base, const sizes &s, int group, const tensor_map *map, float *dq)
{
    int KV = s.H / GROUP;
    u32 from = base + AT_DQ + group * DQ_BYTES;
    ring<1> at = {0, 0};
    int round = 0;
    dependents_wait();
    for (;; at.next()) {
        mbarrier_wait(base + DQ_FULL + 8 * group, at.phase);
        int order = word_at(base + ORDER_AT + 4 * group);
        if (order == STOP) break;
        /* The fence is here because it takes longer in the writers, while wgmma is in flight. */
        fence_async();
        if (order >= 0) {
            bulk_add_f32(dq + (i64)order * PIECE, from, DQ_BYTES);
        } else {
            ring<ITEM_STAGES> of = ring_of(round);
            item it = item_of(STORE - order, s);
            int b = it.head / KV, kv = it.head - b * KV, first = it.rank * BLOCK + OWN * group;
            store_rows(from, map, s.H + kv, first, b);
            store_rows(base + of.stage * ITEM_BYTES + BLOCK_BYTES + group * OWN_BYTES, map,
                       s.H + KV + kv, first, b);
        }
        tma_store_commit();
        tma_store_wait_read<0>();
        mbarrier_arrive(base + DQ_FREE + 8 * group);
        if (order >= 0) continue;
        mbarrier_arrive(base + V_FREE + 8 * ring_of(round++).stage);
    }
    tma_store_wait<0>();
}

/* State of a warpgroup: its keys, a tile of queries of a head, and its stage. */
struct position : keys {
    ring<STAGES> at;
    ring<PAIRS ? 1 : SLOTS> ds; /* the next slot for dS */
    ring<1> dq;
    u32 block;      /* K of both warpgroups */
    int group, tile, member, first_head, T;
    u32 values[4][4]; /* heads of 64: the warpgroup's V as left operand */
};
/* Returns a. Heads of 128: hidden from the compiler, so that values computed from the result take
 * no registers in loops. */
DEVICE int opaque_wide(int a)
{
    return PAIRS ? a : opaque(a);
}
DEVICE int lane_of(const position &p)
{
    return opaque_wide(p.thread) % WARP;
}
DEVICE int end_of_tiles(const position &p)
{
    return tiles_of(opaque_wide(p.T));
}
/* Tiles left in the item, including this one. */
DEVICE int tiles_left(const position &p)
{
    int end = end_of_tiles(p);
    return (GROUP == 1 ? 0 : (GROUP - 1 - p.member) * (end - p.item_tile)) + end - p.tile;
}
typedef float dq_tile[PIECE / WARPGROUP]; /* 64 x 64 */

DEVICE void wait_for_queries(const position &p)
{
    mbarrier_wait(p.base + QUERIES_FULL + 8 * p.at.stage, p.at.phase);
}
/* Starts S of the tile at a stage. */
DEVICE void begin(scores &s, const position &p)
{
    wgmma_forget(s);
    wgmma_fence();
    rows_by_rows(s, (u32)opaque_wide((int)p.k), p.base + AT_TILES + p.at.stage * STAGE_BYTES);
    wgmma_commit();
}
/* Starts dP of the tile at a stage. */
DEVICE void begin_values(scores &dp, const position &p, u32 dy)
{
    wgmma_forget(dp);
    wgmma_fence();
    if constexpr (PAIRS) {
        u64 b = wgmma_descriptor<SWIZZLE>(dy, 16, 8 * PITCH);
        UNROLL for (int k = 0; k < 4; k++) wgmma_rs<TILE, 0>(dp, p.values[k], b + 2 * k, k > 0);
    } else {
        rows_by_rows(dp, p.v, dy);
    }
    wgmma_commit();
}
DEVICE void load_values(position &p)
{
    int lane = p.thread % WARP, row = 16 * (p.thread / WARP) + lane % 16;
    UNROLL for (int k = 0; k < 4; k++)
        ldmatrix_x4(p.values[k], p.v + panel_chunk<SWIZZLE>(row, 2 * k + lane / 16));
}
/* Advances to the next tile, which may belong to the next head. */
DEVICE void advance(position &p)
{
    p.at.next();
    p.tile++;
    if (GROUP == 1 || p.tile < end_of_tiles(p)) return;
    p.tile = p.item_tile;
    p.member++;
}
/* P as rounded for dV, columns 16 k ... 16 k + 15. */
DEVICE void unpack(scores &pr, const kept_scores &a, int k)
{
    UNROLL for (int i = 0; i < 4; i++) {
        pr[8 * k + 2 * i] = __uint_as_float(a[k][i] << 16);
        pr[8 * k + 2 * i + 1] = __uint_as_float(a[k][i] & 0xffff0000u);
    }
}
/* Stores dS (rows: the warpgroup's keys) to a slot, 16 queries at a time to save registers. */
DEVICE void keep_scores(const position &p, int to_slot, kept_scores &e, const kept_scores &a,
                        const scores &dp, const float *stats)
{
    scores pr;
    int thread = opaque(p.thread), lane = thread % WARP,
        row = 64 * p.group + 16 * (thread / WARP) + lane % 16;
    u32 to = p.base + AT_DS + to_slot * DS_BYTES + panel_chunk<SWIZZLE_128B>(row, lane / 16);
    UNROLL for (int k = 0; k < TILE / 16; k++) {
        unpack(pr, a, k);
        gradients(pr, dp, p, stats, 2 * k, 2 * k + 2);
        UNROLL for (int i = 0; i < 4; i++)
            e[k][i] = pack_bf16(pr[8 * k + 2 * i], pr[8 * k + 2 * i + 1]);
        stmatrix_x4(to ^ 32 * k, e[k]);
    }
}
/* Lets the other warpgroup read dS in a slot. */
DEVICE void publish_scores(const position &p, int of_slot)
{
    named_barrier_arrive(DS_READY + 1 - p.group + 2 * of_slot, CONSUMERS * WARPGROUP);
}
/* Starts the matmul of dQ with dS of a slot or, for pairs, with dS of the warpgroup's tile. Without
 * `left` the result is discarded. */
DEVICE void begin_queries(dq_tile &dq, const position &p, int of_slot, bool left = true)
{
    if (left) named_barrier_sync(DS_READY + p.group + 2 * of_slot, CONSUMERS * WARPGROUP);
    /* Where dS is stored, the fence would take longer, because more wgmma are in flight. */
    if (PAIRS) fence_async();
    u64 a = wgmma_descriptor<SWIZZLE_128B>(p.base + AT_DS + (PAIRS ? p.group : of_slot) * DS_BYTES,
                                           16, 1024);
    u64 b = wgmma_descriptor<SWIZZLE_128B>(p.block + (PAIRS ? 0 : p.group * OWN * PITCH), 16, 1024);
    wgmma_forget(dq);
    wgmma_fence();
    UNROLL for (int k = 0; k < BLOCK / 16; k++)
        wgmma_ss<64, 1, 1>(dq, a + k * 128, b + (k / 4 * OWN_BYTES + k % 4 * 2048) / 16, k > 0);
    wgmma_commit();
}
/* Releases the stage before `at`, and dS. */
DEVICE void free_before(const position &p, const ring<STAGES> &at)
{
    release(p.base + FREE + 8 * ((at.stage == 0 ? STAGES : at.stage) - 1), lane_of(p));
}
DEVICE void free_scores(const position &p, int of_slot)
{
    release(p.base + DS_FREE + 8 * of_slot, lane_of(p));
}
/* The warpgroup's piece of dQ of a tile or pair, `back` tiles before this one. */
DEVICE int piece_before(const position &p, int back)
{
    int member = p.member, tile = p.tile - back, end = end_of_tiles(p);
    while (GROUP > 1 && tile < p.item_tile) member--, tile += end - p.item_tile;
    return ((p.first_head + member) * end + tile) * PIECES + p.group;
}
DEVICE void submit(position &p, int order)
{
    if (p.thread == 0) word_at(p.base + ORDER_AT + 4 * opaque_wide(p.group)) = order;
    release(p.base + DQ_FULL + 8 * p.group, lane_of(p));
    p.dq.next();
}
DEVICE void wait_for_space(position &p)
{
    mbarrier_wait(p.base + DQ_FREE + 8 * p.group, p.dq.phase);
}
DEVICE void add_queries(const dq_tile &dq, position &p, int piece)
{
    wait_for_space(p);
    float4 *to = (float4 *)(shared_memory + (p.base - shared_address(shared_memory)) + AT_DQ +
                            p.group * DQ_BYTES);
    to += opaque(p.thread);
    UNROLL for (int c = 0; c < PIECE / WARPGROUP / 4; c++)
        to[c * WARPGROUP] = make_float4(dq[4 * c], dq[4 * c + 1], dq[4 * c + 2], dq[4 * c + 3]);
    submit(p, piece);
}

DEVICE void begin_keys(sums &dk, const kept_scores &e, u32 queries)
{
    wgmma_fence();
    add_by_columns(dk, e, queries);
    wgmma_commit();
}

/* Computes P and dS of a tile, the PART-th of its pair, and adds the tile to dV. Heads of 64: adds
 * it to dK, too. S is complete on entry; dK and the dQ of piece `last` may be in flight. If there
 * is MORE, the next tile's S is complete at the end, and dK in flight. Heads of 128: on entry S is
 * in flight, and dK if there is a tile BEFORE; at the end nothing is in flight. */
template <int PART, bool MORE, bool BEFORE = true>
DEVICE void step(scores &s, kept_scores &e, dq_tile &dq, sums &dk, sums &dv, position &p,
                 int last = -1)
{
    scores dp;
    kept_scores a;
    ring<STAGES> at = p.at;
    u32 queries = p.base + AT_TILES + at.stage * STAGE_BYTES;
    const float *stats = (const float *)(shared_memory + (p.base - shared_address(shared_memory)) +
                                         AT_STATS + at.stage * STATS_BYTES) +
                         p.thread % 4 * 2;
    mbarrier_wait(p.base + DY_FULL + 8 * at.stage, at.phase);
    begin_values(dp, p, queries + TILE_BYTES);
    if (!PAIRS) {
        wgmma_wait<1>();
        wgmma_hold(s);
        if (BEFORE) free_before(p, at);
    }
    if (CAUSAL && p.tile * TILE < p.first + OWN) mask(s, p, p.tile);
    probabilities(s, s, p, stats);
    pack(a, s);
    if (PAIRS) {
        UNROLL for (int k = 0; k < TILE / 16; k++) computed(a[k]);
        if (MORE) advance(p);
        /* This wait contains a branch; without a branch the compiler would move wgmma_wait up. */
        wait_for_queries(p);
        wgmma_wait<1>();
        if (PART == 0) wgmma_hold(dq);
        if (PART == 1 || last >= 0) free_before(p, at);
        if (PART == 0 && last >= 0) free_scores(p, 0);
    }
    wgmma_fence();
    add_by_columns(dv, a, queries + TILE_BYTES);
    wgmma_commit();
    if (PAIRS && MORE && GROUP == 1) begin(s, p);
    if (PAIRS && PART == 0 && last >= 0) add_queries(dq, p, last);
    if (PAIRS && MORE && GROUP > 1) begin(s, p); /* no registers are left for it earlier */
    wgmma_wait<1 + MORE>();
    wgmma_hold(dp);
    if (PART == 0) {
        mbarrier_wait(p.base + DS_FREE + 8 * p.ds.stage, p.ds.phase);
        if (PAIRS) p.ds.next();
    }
    keep_scores(p, PAIRS ? PART : p.ds.stage, e, a, dp, stats);
    if (PAIRS) {
        if (PART == 1) publish_scores(p, 0);
        begin_keys(dk, e, queries);
        wgmma_wait<1>();
        wgmma_hold(dv);
        if (MORE) wgmma_hold(s);
    } else {
        wgmma_wait<0>();
        wgmma_hold(dv);
        fence_async();
        publish_scores(p, p.ds.stage);
        p.ds.next();
    }
}

/* Completes the work in flight at the end of an item. */
DEVICE void last_queries(dq_tile &dq, sums &dk, sums &dv, position &p, int of_slot)
{
    wgmma_wait<0>();
    wgmma_hold(dk);
    wgmma_hold(dv);
    wgmma_hold(dq);
    advance(p);
    free_before(p, p.at);
    free_scores(p, of_slot);
    add_queries(dq, p, piece_before(p, PARTS));
}
/* Processes pairs of tiles; S of the first is in flight. */
DEVICE void walk_pairs(scores &s, sums &dk, sums &dv, position &p)
{
    kept_scores e;
    dq_tile dq;
    int last = -1; /* the piece in flight */
    wgmma_wait<0>();
    wgmma_hold(s);
#pragma unroll 1
    while (tiles_left(p) > PARTS) {
        int next = piece_before(p, 0);
        begin_queries(dq, p, 0, last >= 0);
        step<0, true>(s, e, dq, dk, dv, p, last);
        step<PARTS - 1, true>(s, e, dq, dk, dv, p);
        last = next;
    }
    begin_queries(dq, p, 0, last >= 0);
    step<0, true>(s, e, dq, dk, dv, p, last);
    step<PARTS - 1, false>(s, e, dq, dk, dv, p);
    begin_queries(dq, p, 0);
    last_queries(dq, dk, dv, p, 0);
}
DEVICE void begin_tile_keys(sums &dk, const kept_scores &e, const position &p)
{
    begin_keys(dk, e, p.base + AT_TILES + p.at.stage * STAGE_BYTES);
}
/* Like walk_pairs, but tile by tile. dQ starts after the next tile's dS, so neither warpgroup
 * waits. */
DEVICE void walk_tiles(scores &s, sums &dk, sums &dv, position &p)
{
    kept_scores e;
    dq_tile dq;
    step<0, false, false>(s, e, dq, dk, dv, p);
    if (tiles_left(p) > 1) {
        begin_tile_keys(dk, e, p);
        advance(p);
        wait_for_queries(p);
        begin(s, p);
        step<0, false>(s, e, dq, dk, dv, p);
#pragma unroll 1
        while (tiles_left(p) > 1) {
            begin_queries(dq, p, p.ds.stage);
            begin_tile_keys(dk, e, p);
            wgmma_wait<1>();
            wgmma_hold(dq);
            free_scores(p, p.ds.stage);
            add_queries(dq, p, piece_before(p, 1)); /* during dK, before S */
            advance(p);
            wait_for_queries(p);
            begin(s, p);
            step<0, false>(s, e, dq, dk, dv, p);
        }
        begin_queries(dq, p, p.ds.stage);
        wgmma_wait<0>();
        wgmma_hold(dq);
        free_scores(p, p.ds.stage);
        add_queries(dq, p, piece_before(p, 1));
    }
    begin_queries(dq, p, p.ds.stage ^ 1);
    begin_tile_keys(dk, e, p);
    last_queries(dq, dk, dv, p, p.ds.stage ^ 1);
}
/* Processes an item's tiles. No wgmma whose sums a loop reads may be in flight between the
 * iterations of the loop, because the compiler would then wait for every wgmma. Arrays that are
 * overwritten are local to loops, which frees registers. */
DEVICE void walk(sums &dk, sums &dv, position &p, u32 values_full, int phase)
{
    scores s;
    wait_for_queries(p);
    begin(s, p);
    mbarrier_wait(values_full, phase);
    if (PAIRS) {
        load_values(p);
        walk_pairs(s, dk, dv, p);
    } else {
        walk_tiles(s, dk, dv, p);
    }
}

DEVICE void consume(const sizes &s, position &p, float scale)
{
    ring<ITEM_STAGES> of = {0, 0};
    int KV = s.H / GROUP;
    p.T = s.T;
    for (;; of.next()) {
        mbarrier_wait(p.base + ITEM_READY + 8 * of.stage, of.phase);
        int i = (int)warp_word((const volatile u32 *)&word_at(p.base + ITEM_AT + 4 * of.stage));
        if (i == STOP) break;
        mbarrier_wait(p.base + K_FULL + 8 * of.stage, of.phase);
        sizes of_items = s;
        of_items.T = opaque_wide(s.T);
        item it = item_of(i, of_items);
        int b = it.head / KV, kv = it.head - b * KV, first = it.rank * BLOCK;
        p.first = first + OWN * p.group;
        p.tile = p.item_tile = first_tile(first);
        p.member = 0;
        p.first_head = b * s.H + kv * GROUP;
        p.block = p.base + of.stage * ITEM_BYTES;
        p.k = p.block + p.group * OWN_BYTES;
        p.v = p.k + BLOCK_BYTES;
        sums dk, dv;
        clear(dk);
        clear(dv);
        walk(dk, dv, p, p.base + V_FULL + 8 * of.stage, of.phase);
        /* Reloads i, which saves a register in the loops. */
        i = word_at(p.base + ITEM_AT + 4 * opaque_wide(of.stage));
        release(p.base + K_FREE + 8 * of.stage, lane_of(p));
        wait_for_space(p);
        named_barrier_sync(1 + p.group, WARPGROUP); /* V is read */
        keep_rows(p.base + AT_DQ + p.group * DQ_BYTES, dk, scale, p.thread);
        keep_rows(p.v, dv, 1, p.thread);
        fence_async();
        submit(p, STORE - i);
    }
    wait_for_space(p);
    submit(p, STOP);
}

KERNEL_MIN(THREADS, 1)
attention_hopper_dqkv(const __grid_constant__ tensor_map rows,
                      const __grid_constant__ tensor_map dy,
                      const __grid_constant__ tensor_map dqkv,
                      const __grid_constant__ tensor_map stats, float *dq, int *counter,
                      float scale, int T, int H, int heads, int section, int items)
{
    u32 base = shared_base();
    sizes s = sizes_of(T, H, heads, section, items);
    int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < ITEM_STAGES; i++) {
            mbarrier_init(base + ITEM_READY + 8 * i, 1);
            mbarrier_init(base + K_FULL + 8 * i, 1);
            mbarrier_init(base + V_FULL + 8 * i, 1);
            mbarrier_init(base + K_FREE + 8 * i, ARRIVALS);
            mbarrier_init(base + V_FREE + 8 * i, CONSUMERS);
        }
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(base + QUERIES_FULL + 8 * i, 1);
            mbarrier_init(base + DY_FULL + 8 * i, 1);
            mbarrier_init(base + FREE + 8 * i, ARRIVALS);
        }
        for (int i = 0; i < SLOTS; i++) mbarrier_init(base + DS_FREE + 8 * i, ARRIVALS);
        for (int i = 0; i < CONSUMERS; i++) {
            mbarrier_init(base + DQ_FULL + 8 * i, WARPGROUP / WARP);
            mbarrier_init(base + DQ_FREE + 8 * i, 1);
        }
        fence_barrier_init();
    }
    __syncthreads();
    dependents_start();
    if (group == CONSUMERS) {
        registers_dec<PRODUCER_REGISTERS>();
        int warp = threadIdx.x / WARP % 4;
        if (threadIdx.x % WARP) return;
        if (warp < CONSUMERS)
            store_results(base, s, warp, &dqkv, dq);
        else if (warp == CONSUMERS)
            produce_items(base, s, &rows, counter);
        else
            produce_tiles(base, s, &rows, &dy, &stats);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        position p;
        p.base = base;
        p.group = group;
        p.thread = threadIdx.x % WARPGROUP;
        p.factor = scale * LOG2_E;
        p.at.stage = p.at.phase = p.ds.stage = p.dq.stage = 0;
        p.ds.phase = p.dq.phase = 1;
        consume(s, p, scale);
    }
}
