/* attention_hopper_dq.cu - attention backward for sm_90a, first kernel: dq, row statistics.
 *
 * dy (B,T,C), qkv (B,T,C+2*KV*D), y (B,T,C), log-sum-exp (B,H,T) -> the first C columns of dqkv
 * (laid out like qkv); stats (B,H,tiles of 64,2,64) float: the log-sum-exp times log2 e, infinite
 * from T on, and delta = rowsum(dy y).
 *     S = Q K^T, P = exp(S - lse), dP = dY V^T, dS = P (dP - delta), dQ += dS K.
 * A warpgroup has 64 queries (a thread has parts of two) and walks over the keys that they see,
 * last to first. Items are counted from the last query, so a short item sees the fewest keys.
 *
 * Bound by tensor cores: 3 matmuls of 2 D clocks for 64 x 64 pairs. Reads and writes 8 D bytes a
 * row, and rereads keys for each item from L2. Constants: see attention_hopper_grad.cuh;
 * ITEM_STAGES of Q, dY, y; V_STAGES of V.
 *
 * WIDE heads leave no space for y: attention_hopper_sums.cu computes the statistics first, and dQ
 * overwrites dY. V has a separate ring: one matmul reads a tile of V, two read a tile of K. */
#include "attention_hopper_grad.cuh"

static_assert(STAGES > (AHEAD > 0) + LATE, "a warpgroup would wait for itself");
static_assert(WIDE ? ITEM_STAGES == 1 && !AHEAD : V_STAGES == STAGES, "");

enum {
    BLOCK_BYTES = CONSUMERS * OWN_BYTES,
    KINDS = WIDE ? 2 : 3,
    ITEM_BYTES = KINDS * BLOCK_BYTES, /* Q, dY, y; dQ overwrites y or, if WIDE, dY */
    AT_TILES = ITEM_STAGES * ITEM_BYTES, AT_BARRIERS = AT_TILES + (STAGES + V_STAGES) * TILE_BYTES,
    /* Barriers of each warpgroup and stage. If SEPARATE, there is a single stage, and Q, dY and y
     * each have their own barriers, because each is released after its last use. Otherwise Q_FULL
     * and Y_FREE cover Q, dY and y together. */
    SEPARATE = ITEM_STAGES == 1, ROWS = 8 * CONSUMERS * ITEM_STAGES,
    Q_FULL = AT_BARRIERS, DY_FULL = Q_FULL + ROWS, Y_FULL = DY_FULL + ROWS,
    Q_FREE = Y_FULL + ROWS, DY_FREE = Q_FREE + ROWS, Y_FREE = DY_FREE + ROWS,
    KEYS_FULL = Y_FREE + ROWS, VALUES_FULL = KEYS_FULL + 8 * STAGES,
    FREE = VALUES_FULL + 8 * V_STAGES, /* WIDE: of keys */
    VALUES_FREE = FREE + 8 * STAGES,   /* WIDE only */
    EARLY = AHEAD == 2,
    /* Calls compute_statistics() during dP, because with a single stage y arrives late. */
    STATISTICS_LATE = AHEAD && LATE,
    /* Loads an item's log-sum-exp one item ahead, where registers allow. */
    LSE_AHEAD = !WIDE && !(AHEAD && LATE),
};

/* Shared memory of a tile's keys and values, at their stages. */
DEVICE u32 key_tile(u32 base, int stage)
{
    return base + AT_TILES + stage * (WIDE ? 1 : 2) * TILE_BYTES;
}
DEVICE u32 value_tile(u32 base, int stage)
{
    return key_tile(base, WIDE ? STAGES + stage : stage) + (WIDE ? 0 : TILE_BYTES);
}

/* Number of keys that some query of rows first ... first + rows - 1 sees. */
DEVICE int seen_by(int first, int rows, int T)
{
    return CAUSAL && first + rows < T ? first + rows : T;
}

struct sizes {
    int T, H, heads, items;
};
DEVICE sizes sizes_of(int T, int H, int heads, int items)
{
    sizes s = {T, H, heads, items};
    return s;
}
/* The item's first query, which may be negative. */
DEVICE int first_query(const sizes &s, int rank)
{
    return round_up(s.T, OWN) - BLOCK * (rank + 1);
}

/* The barrier of a warpgroup's rows in a stage of items. */
DEVICE u32 rows_barrier(u32 barriers, int group, int stage)
{
    return barriers + 8 * (stage * CONSUMERS + group);
}
/* Loads OWN rows from `first` on of one kind (0: Q, 1: dY, 2: y), once the earlier rows in this
 * stage have been read. */
DEVICE void load_own(u32 base, const ring<ITEM_STAGES> &at, int kind, int group,
                     const tensor_map *map, int h, int first, int b)
{
    int barrier = SEPARATE ? kind * ROWS : 0;
    u32 full = rows_barrier(base + Q_FULL + barrier, group, at.stage);
    if (SEPARATE || kind == 0) {
        mbarrier_wait(rows_barrier(base + (SEPARATE ? Q_FREE + barrier : Y_FREE), group, at.stage),
                      at.phase ^ 1);
        mbarrier_expect(full, SEPARATE ? OWN_BYTES : KINDS * OWN_BYTES);
    }
    load_rows<OWN>(base + at.stage * ITEM_BYTES + kind * BLOCK_BYTES + group * OWN_BYTES, map, full,
                   h, first, b);
}
/* One thread requests the rows of items. */
DEVICE void produce_rows(u32 base, const sizes &s, const tensor_map *rows, const tensor_map *dy,
                         const tensor_map *y)
{
    for (int round = 0, i; (i = item_in_round(round)) < s.items; round++) {
        item it = item_of(i, s.heads);
        int b = it.head / s.H, h = it.head - b * s.H, first = first_query(s, it.rank);
#pragma unroll 1
        for (int j = 0; j < KINDS * CONSUMERS; j++) { /* kind by kind, if waited for separately */
            int kind = SEPARATE ? j / CONSUMERS : j % KINDS,
                group = SEPARATE ? j % CONSUMERS : j / KINDS;
            load_own(base, ring_of(round), kind, group,
                     kind == 0   ? rows
                     : kind == 1 ? dy
                                 : y,
                     h, first + OWN * part_in_round(group, round), b);
        }
    }
}
/* One thread requests tiles of KEYS, VALUES or both. It requests tiles of the next item even while
 * the rows of that item still wait for space. */
template <bool KEYS, bool VALUES>
DEVICE void produce(u32 base, const sizes &s, const tensor_map *tiles)
{
    ring<KEYS ? STAGES : V_STAGES> at = {0, 1};
    for (int round = 0, i; (i = item_in_round(round)) < s.items; round++) {
        item it = item_of(i, s.heads);
        int b = it.head / s.H, kv = (it.head - b * s.H) / GROUP, KV = s.H / GROUP,
            first = first_query(s, it.rank);
#pragma unroll 1
        for (int tile = (seen_by(first, BLOCK, s.T) - 1) / TILE; tile >= 0; tile--, at.next()) {
            mbarrier_wait(base + (KEYS ? FREE : VALUES_FREE) + 8 * at.stage, at.phase);
            if (KEYS) {
                mbarrier_expect(base + KEYS_FULL + 8 * at.stage, TILE_BYTES);
                load_rows<TILE>(key_tile(base, at.stage), tiles, base + KEYS_FULL + 8 * at.stage,
                                s.H + kv, tile * TILE, b);
            }
            if (!VALUES) continue;
            mbarrier_expect(base + VALUES_FULL + 8 * at.stage, TILE_BYTES);
            load_rows<TILE>(value_tile(base, at.stage), tiles, base + VALUES_FULL + 8 * at.stage,
                            s.H + KV + kv, tile * TILE, b);
        }
    }
}

/* A thread's state of its warpgroup's queries; [h]: row g + 8h of its warp. */
struct queries {
    u32 q, dy; /* the warpgroup's rows in shared memory */
    int head, first, thread, T, heads;
    ring<V_STAGES> values; /* of the next tile; WIDE only */
    const float *lse_of;   /* (B,H,T) */
    float lse[2], delta[2], factor;
    int round, group;
    u32 base;
    float *stats; /* of all items */
#if DROPOUT
    u32 seed, site, step;
    int threshold;
    float drop_scale;
#endif
};

/* Computes delta of the thread's two rows. The four lanes of a row divide its chunks. */
DEVICE void sum_rows(queries &own, u32 y)
{
    int lane = own.thread % WARP, row = own.thread / WARP * 16 + lane / 4;
    UNROLL for (int half = 0; half < 2; half++) {
        float sum = 0;
        UNROLL for (int c = 0; c < D / 8; c += 4) {
            int chunk = c + lane % 4;
            if (D % 32 && chunk >= D / 8) break;
            u32 at = chunk / (PANEL / 8) * OWN * PITCH +
                     panel_chunk<SWIZZLE>(row + 8 * half, chunk % (PANEL / 8)),
                a[4], e[4];
            load_shared_16(a, own.dy + at);
            load_shared_16(e, y + at);
            UNROLL for (int i = 0; i < 4; i++)
                sum += __uint_as_float(a[i] << 16) * __uint_as_float(e[i] << 16) +
                       __uint_as_float(a[i] & 0xffff0000u) * __uint_as_float(e[i] & 0xffff0000u);
        }
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        own.delta[half] = sum;
    }
}

/* Loads the log-sum-exp of an item's rows, without scaling. */
DEVICE void load_lse(float (&lse)[2], const queries &own, int i, int items, int part)
{
    if (i >= items) return;
    item it = item_of(i, own.heads);
    int t = round_up(own.T, OWN) - BLOCK * (it.rank + 1) + OWN * part + own.thread / WARP * 16 +
            own.thread % WARP / 4;
    lse[0] = lse[1] = INFINITY_F;
    const float *at = own.lse_of + (i64)it.head * own.T + t;
    if (t >= 0 && t < own.T) lse[0] = at[0];
    if (t >= 0 && t + 8 < own.T) lse[1] = at[8];
}
DEVICE void load_stats(queries &own)
{
    int strips = ceil_div(own.T, STATS);
    const float *at = own.stats +
                      ((i64)own.head * strips + own.first / STATS) * 2 * STATS +
                      own.thread / WARP * 16 + own.thread % WARP / 4;
    UNROLL for (int h = 0; h < 2; h++) {
        own.lse[h] = own.first < 0 ? INFINITY_F : at[8 * h];
        own.delta[h] = own.first < 0 ? 0 : at[STATS + 8 * h];
    }
}
DEVICE u32 own_barrier(const queries &own, u32 barriers)
{
    return rows_barrier(own.base + barriers, own.group, ring_of(own.round).stage);
}
DEVICE void wait_own(const queries &own, u32 barriers)
{
    mbarrier_wait(own_barrier(own, barriers), ring_of(own.round).phase);
}
/* Releases the space of y, where the previous item's dQ is. */
DEVICE void release_last(const queries &own)
{
    if (ITEM_STAGES > 1 && own.round > 0)
        release_rows(rows_barrier(own.base + Y_FREE, own.group, ring_of(own.round - 1).stage),
                     own.thread);
}
/* Called during an item's first matmuls: releases the previous item, computes delta, and stores the
 * statistics for the next kernel. */
DEVICE void compute_statistics(queries &own)
{
    int lane = own.thread % WARP;
    release_last(own);
    if (WIDE) return;
    if (SEPARATE) wait_own(own, DY_FULL), wait_own(own, Y_FULL);
    sum_rows(own, own.dy + BLOCK_BYTES);
    if (lane % 4 < 2) {
        int strips = ceil_div(own.T, STATS);
        float *to = own.stats + ((i64)own.head * strips + own.first / STATS) * 2 * STATS +
                    own.thread / WARP * 16 + lane / 4 + lane % 2 * 8;
        to[0] = lane % 2 ? own.lse[1] : own.lse[0];
        to[STATS] = lane % 2 ? own.delta[1] : own.delta[0];
    }
}
/* Signals that this warp's last matmuls with Q, or dY, have ended. */
DEVICE void free_own(const queries &own, u32 barriers)
{
    if (!SEPARATE || (WIDE && barriers == DY_FREE)) return;
    release(own_barrier(own, barriers), own.thread % WARP);
}

/* Sets masked scores to -inf. */
DEVICE void mask(scores &s, const queries &own, int tile)
{
    int lane = own.thread % WARP, column = tile * TILE + lane % 4 * 2;
    int row = own.first + own.thread / WARP * 16 + lane / 4 - column, end = own.T - column;
    UNROLL for (int i = 0; i < TILE / 2; i++) {
        int at = i / 4 * 8 + i % 2;
        if (CAUSAL ? at > row + i / 2 % 2 * 8 : at >= end) s[i] = -INFINITY_F;
    }
}

#if DROPOUT
DEVICE void drop_gradients(scores &dp, const queries &own, int tile)
{
    int warp = own.thread / WARP, lane = own.thread % WARP;
    UNROLL for (int j = 0; j < TILE / 32; j++) {
        drop_bytes d = random_bytes<false>(own.seed, own.site, own.step, own.head,
                                           own.first / 16 + warp, tile * TILE / 16 + 2 * j, lane);
        UNROLL for (int i = 0; i < 16; i++)
            dp[16 * j + i] = drop_byte<false>(d, 0, i / 4, i % 4) >= own.threshold
                                 ? dp[16 * j + i] * own.drop_scale
                                 : 0;
    }
}
#endif

/* Starts S of the tile at a stage. */
DEVICE void begin(scores &s, const queries &own, u32 base, const ring<STAGES> &at)
{
    mbarrier_wait(base + KEYS_FULL + 8 * at.stage, at.phase);
    wgmma_fence();
    rows_by_rows(s, own.q, key_tile(base, at.stage));
}

/* Processes a tile of keys at the stage `at`. With AHEAD, S of this tile is complete on entry. If
 * there are MORE tiles, S of the next tile is started here and is complete at the end. With LATE,
 * dQ of the previous tile, at the stage `before` (-1 if there is no previous tile), may be in
 * flight on entry, and dQ of this tile may be in flight at the end. */
template <bool MORE>
DEVICE void step(scores &s, scores &next, sums &dq, queries &own, u32 base, ring<STAGES> &at,
                 int &before, int tile)
{
    scores dp, p;
    kept_scores a;
    int here = at.stage, lane = own.thread % WARP;
    int value_stage = WIDE ? own.values.stage : here;
    if (!AHEAD) {
        begin(s, own, base, at);
        wgmma_commit();
    }
    if (SEPARATE && before < 0) wait_own(own, DY_FULL);
    mbarrier_wait(base + VALUES_FULL + 8 * value_stage, WIDE ? own.values.phase : at.phase);
    wgmma_fence();
    rows_by_rows(dp, own.dy, value_tile(base, value_stage));
    wgmma_commit();
    at.next();
    if (AHEAD && EARLY && MORE) {
        begin(next, own, base, at);
        wgmma_commit();
    }
    if (!AHEAD) {
        if (before < 0) compute_statistics(own);
        wgmma_wait<1>();
        wgmma_hold(s);
    }
    if (CAUSAL ? tile * TILE + TILE - 1 > own.first : tile * TILE + TILE > own.T)
        mask(s, own, tile);
    UNROLL for (int i = 0; i < TILE / 2; i++)
        p[i] = ex2_approx(s[i] * own.factor - own.lse[i / 2 % 2]);
    if (AHEAD && !EARLY && MORE) {
        begin(s, own, base, at);
        wgmma_commit();
    }
    if (STATISTICS_LATE && before < 0) compute_statistics(own);
    wgmma_wait<(AHEAD && MORE)>();
    wgmma_hold(dp);
    if (WIDE) {
        release(base + VALUES_FREE + 8 * value_stage, lane);
        own.values.next();
    }
    if (AHEAD && !MORE) free_own(own, DY_FREE);
    if (LATE && before >= 0) release(base + FREE + 8 * before, lane);
    before = here;
#if DROPOUT
    drop_gradients(dp, own, tile);
#endif
    UNROLL for (int i = 0; i < TILE / 2; i++) p[i] *= dp[i] - own.delta[i / 2 % 2];
    pack(a, p);
    wgmma_fence();
    add_by_columns(dq, a, key_tile(base, here));
    wgmma_commit();
    if (AHEAD || !LATE) wgmma_wait<LATE>();
    if (AHEAD && MORE) wgmma_hold(EARLY ? next : s);
    if (LATE) return;
    wgmma_hold(dq);
    release(base + FREE + 8 * here, lane);
}

/* Processes all tiles that the warpgroup's queries see, from tile number `tile` down to 0. */
DEVICE void walk(sums &dq, queries &own, u32 base, ring<STAGES> &at, int tile)
{
    scores s, next;
    int before = -1;
    if (AHEAD) {
        begin(s, own, base, at);
        wgmma_commit();
        if (!STATISTICS_LATE) compute_statistics(own);
        wgmma_wait<0>();
        wgmma_hold(s);
    }
    if (AHEAD && EARLY) {
#pragma unroll 1
        for (;;) {
            if (tile == 0) {
                free_own(own, Q_FREE);
                step<false>(s, next, dq, own, base, at, before, tile);
                break;
            }
            step<true>(s, next, dq, own, base, at, before, tile--);
            if (tile == 0) {
                free_own(own, Q_FREE);
                step<false>(next, s, dq, own, base, at, before, tile);
                break;
            }
            step<true>(next, s, dq, own, base, at, before, tile--);
        }
    } else if (AHEAD) {
#pragma unroll 1
        for (; tile > 0; tile--) step<true>(s, s, dq, own, base, at, before, tile);
        free_own(own, Q_FREE);
        step<false>(s, s, dq, own, base, at, before, tile);
    } else {
#pragma unroll 1
        for (; tile >= 0; tile--) step<false>(s, s, dq, own, base, at, before, tile);
    }
    wgmma_wait<0>();
    wgmma_hold(dq);
    if (!AHEAD) free_own(own, Q_FREE), free_own(own, DY_FREE);
    if (LATE) release(base + FREE + 8 * before, own.thread % WARP);
}

DEVICE void consume(u32 base, const sizes &s, int group, queries &own, const tensor_map *map,
                    float scale)
{
    ring<STAGES> at = {0, 0};
    int lane = own.thread % WARP;
    float next_lse[2];
    if (LSE_AHEAD) load_lse(next_lse, own, item_in_round(0), s.items, part_in_round(group, 0));
    if (WIDE) dependents_wait();
    for (int round = 0, i; (i = item_in_round(round)) < s.items; round++) {
        ring<ITEM_STAGES> of = ring_of(round);
        own.round = round, own.base = base, own.group = group;
        item it = item_of(i, s.heads);
        int first = first_query(s, it.rank), tile = (seen_by(first, BLOCK, s.T) - 1) / TILE,
            part = part_in_round(group, round);
        own.head = it.head;
        own.first = first + OWN * part;
        int mine = own.first < 0 ? -1 : (seen_by(own.first, OWN, s.T) - 1) / TILE;
        own.q = base + of.stage * ITEM_BYTES + group * OWN_BYTES;
        own.dy = own.q + BLOCK_BYTES;
        if (WIDE) load_stats(own);
        else if (!LSE_AHEAD) load_lse(next_lse, own, i, s.items, part);
        if (!WIDE) own.lse[0] = next_lse[0] * LOG2_E, own.lse[1] = next_lse[1] * LOG2_E;
        if (LSE_AHEAD)
            load_lse(next_lse, own, item_in_round(round + 1), s.items,
                     part_in_round(group, round + 1));
        wait_own(own, Q_FULL);
        for (; tile > mine; tile--, at.next()) { /* seen by later queries only */
            int stage = WIDE ? own.values.stage : at.stage;
            mbarrier_wait(base + KEYS_FULL + 8 * at.stage, at.phase);
            mbarrier_wait(base + VALUES_FULL + 8 * stage, WIDE ? own.values.phase : at.phase);
            release(base + FREE + 8 * at.stage, lane);
            if (WIDE) release(base + VALUES_FREE + 8 * stage, lane), own.values.next();
        }
        u32 y = WIDE ? own.dy : own.dy + BLOCK_BYTES;
        if (mine >= 0) {
            sums dq;
            clear(dq);
            walk(dq, own, base, at, mine);
            if (WIDE) named_barrier_sync(1 + group, WARPGROUP); /* dY is read */
            keep_rows(y, dq, scale, own.thread);
            fence_async();
        } else {
            release_last(own);
            if (SEPARATE) wait_own(own, DY_FULL);
            if (SEPARATE && !WIDE) wait_own(own, Y_FULL);
            free_own(own, Q_FREE), free_own(own, DY_FREE);
        }
        named_barrier_sync(1 + group, WARPGROUP);
        if (mine >= 0 && own.thread == 0) {
            store_rows(y, map, it.head % s.H, own.first, it.head / s.H);
            tma_store_commit();
        }
        if (ITEM_STAGES == 1)
            release_rows(rows_barrier(base + (WIDE ? DY_FREE : Y_FREE), group, 0), own.thread);
    }
    if (own.thread == 0) tma_store_wait_read<0>();
}

KERNEL_MIN(THREADS, 1)
attention_hopper_dq(const __grid_constant__ tensor_map rows,
                    const __grid_constant__ tensor_map tiles, const __grid_constant__ tensor_map dy,
                    const __grid_constant__ tensor_map y, const __grid_constant__ tensor_map dqkv,
                    const float *lse, float *stats, const int *step_number, float scale, int T,
                    int H, int heads, int items, u32 seed, u32 site, int threshold)
{
    u32 base = shared_base();
    sizes s = sizes_of(T, H, heads, items);
    int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    if (threadIdx.x == CONSUMERS * WARPGROUP) {
        tma_prefetch_map(&rows);
        tma_prefetch_map(&tiles);
        tma_prefetch_map(&dy);
        tma_prefetch_map(&y);
        tma_prefetch_map(&dqkv);
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3 * CONSUMERS * ITEM_STAGES; i++) {
            mbarrier_init(base + Q_FULL + 8 * i, 1);
            mbarrier_init(base + Q_FREE + 8 * i,
                          i < (KINDS - 1) * CONSUMERS * ITEM_STAGES ? WARPGROUP / WARP : 1);
        }
        for (int i = 0; i < STAGES; i++) {
            mbarrier_init(base + KEYS_FULL + 8 * i, 1);
            mbarrier_init(base + FREE + 8 * i, ARRIVALS);
        }
        for (int i = 0; i < V_STAGES; i++) {
            mbarrier_init(base + VALUES_FULL + 8 * i, 1);
            if (WIDE) mbarrier_init(base + VALUES_FREE + 8 * i, ARRIVALS);
        }
        fence_barrier_init();
    }
    __syncthreads();
    dependents_start();
    if (group == CONSUMERS) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) produce<true, !WIDE>(base, s, &tiles);
        if (threadIdx.x == CONSUMERS * WARPGROUP + WARP) produce_rows(base, s, &rows, &dy, &y);
        if (WIDE && threadIdx.x == CONSUMERS * WARPGROUP + 2 * WARP)
            produce<false, true>(base, s, &tiles);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        queries own;
        own.thread = threadIdx.x % WARPGROUP;
        own.T = T;
        own.factor = scale * LOG2_E;
#if DROPOUT
        own.seed = seed, own.site = site, own.step = (u32)*step_number;
        own.threshold = threshold;
        own.drop_scale = dropout_scale(threshold);
#endif
        own.heads = heads;
        own.lse_of = lse;
        own.stats = stats;
        own.values.stage = own.values.phase = 0;
        consume(base, s, group, own, &dqkv, scale);
    }
}
