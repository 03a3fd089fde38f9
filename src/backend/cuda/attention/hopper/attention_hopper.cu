/* attention_hopper.cu - attention over packed q, k, v with wgmma: qkv (B,T,H+2*KV,HEAD) -> y
 * (B,T,H,HEAD), bf16, log-sum-exp (B,H,T) float. Query head h uses key head h / GROUP.
 *
 * FlashAttention (Dao, arXiv 2307.08691), in the form of FlashAttention-3 (Shah et al., arXiv
 * 2407.08608). Blocks are persistent. An item is ROWS = 64 * CONSUMERS query rows of one head;
 * items with the most keys come first. Two producer warps load through tensor maps: one loads
 * queries and tiles of KEYS keys, the other tiles of values. Each consumer warpgroup has 64 rows
 * and walks over the tiles from the last tile that its rows see to the first.
 *
 * Bound by the tensor cores (HEAD * KEYS / 1024 clocks for a row of a tile), if HEAD is below 64 by
 * the exponentials (KEYS / 16 clocks), at 64 equally by both. Reads and writes at most 4 HEAD
 * elements a row, as rows and heads that run concurrently share their keys in L2.
 *
 *     HEAD % 16 == 0, CONSUMERS 2 to 4, KEYS % 64 == 0, GROUP, CAUSAL, DROPOUT
 *     STAGES, V_STAGES  tiles of keys, and of values, in shared memory
 *     OWN_STAGES  items with queries, or later output, in shared memory: 1 or 2
 *     TURNS       warpgroups issue their wgmma in turn, so that they stay out of step
 *
 * A warpgroup computes a tile's exponentials while its wgmma multiplies the previous tile's weights
 * and values. `top` is subtracted from the exponents. It is the row's maximum in the first tile;
 * later maxima are not computed. Float sums and outputs tolerate terms up to 2^64. If a thread's
 * sum for a row is not below 2^64, or an output is not finite, the consumer writes nothing, and the
 * item is issued again. In this second run, if a term would exceed 2^8, the warp raises `top` of
 * its rows to their maxima.
 *
 * A tensor map ends at row T of each sequence and at the head's last column, which may be before
 * HEAD: reads beyond return zeros and writes are dropped. */
#include "hopper.cuh"

enum {
    WARPGROUP = 128, THREADS = WARPGROUP * (CONSUMERS + 1), ROWS = 64 * CONSUMERS,
    WIDTH = HEAD % 64 == 0 ? 64 : HEAD % 32 == 0 ? 32 : 16, /* columns of a panel */
    PITCH = 2 * WIDTH,                                      /* bytes of a panel's row */
    PANELS = HEAD / WIDTH,
    SWIZZLE = WIDTH == 64 ? SWIZZLE_128B : WIDTH == 32 ? SWIZZLE_64B : SWIZZLE_32B,
    /* Shared memory: each consumer's queries or output of OWN_STAGES items; tiles; barriers. */
    OWN_BYTES = 64 * HEAD * 2, TILE_BYTES = KEYS * HEAD * 2,
    AT_K = OWN_STAGES * CONSUMERS * OWN_BYTES, AT_V = AT_K + STAGES * TILE_BYTES,
    AT_BARRIERS = AT_V + V_STAGES * TILE_BYTES,
    Q_FULL = AT_BARRIERS, /* of each consumer and own stage */
    Q_EMPTY = Q_FULL + 8 * OWN_STAGES * CONSUMERS,
    K_FULL = Q_EMPTY + 8 * OWN_STAGES * CONSUMERS, /* of each stage */
    K_EMPTY = K_FULL + 8 * STAGES, V_FULL = K_EMPTY + 8 * STAGES,
    V_EMPTY = V_FULL + 8 * V_STAGES,
    ITEM_FULL = V_EMPTY + 8 * V_STAGES, /* of each of the two slots of items */
    ITEM_EMPTY = ITEM_FULL + 16, AT_ITEMS = ITEM_EMPTY + 16,
    /* Named barriers: one for each consumer's turn; one for each consumer's threads. */
    TURN = 1, OWN = TURN + CONSUMERS,
    /* Registers of a thread, from the 65536 of an SM. */
    CONSUMER_REGISTERS = CONSUMERS == 2 ? 232 : CONSUMERS == 3 ? 160 : 112,
    PRODUCER_REGISTERS = CONSUMERS == 2 ? 40 : 32,
};
static_assert(HEAD % 16 == 0 && KEYS % 64 == 0 && 2 <= CONSUMERS && CONSUMERS <= 4, "");
extern __shared__ __align__(1024) u8 shared_memory[];
#include "attention_hopper_items.cuh"
#include "attention_hopper_softmax.cuh"

/* The next stage, and the parity of its barriers. */
struct ring {
    int stage, parity;
};
template <int N = STAGES> DEVICE void advance(ring &r)
{
    if (++r.stage == N) r.stage = 0, r.parity ^= 1;
}
DEVICE u32 barrier_of(u32 barriers, const ring &r)
{
    return barriers + 8 * r.stage;
}

/* Consumer w's rows for its n-th item, and their barriers. */
DEVICE u32 own_rows(u32 base, int w, int n)
{
    return base + (OWN_STAGES * w + n % OWN_STAGES) * OWN_BYTES;
}
DEVICE u32 own_barrier(u32 barriers, int w, int n)
{
    return barriers + 8 * (OWN_STAGES * w + n % OWN_STAGES);
}
template <int N>
DEVICE void load_rows(u32 to, const tensor_map *map, u32 barrier, int head, int row, int b)
{
    mbarrier_expect(barrier, N * HEAD * 2);
    UNROLL for (int p = 0; p < PANELS; p++)
        tma_load(to + p * N * PITCH, map, barrier, p * WIDTH, head, row, b, 0);
}

/* Loads a head's tiles of keys or values. One thread. `begun`: the first is already requested. */
template <bool VALUES>
DEVICE void load_tiles(u32 base, ring &r, const tensor_map *map, int head, int b, int tiles,
                       bool begun)
{
    constexpr int N = VALUES ? V_STAGES : STAGES;
    u32 full = base + (VALUES ? V_FULL : K_FULL), empty = base + (VALUES ? V_EMPTY : K_EMPTY);
    u32 at = base + (VALUES ? AT_V : AT_K);
    if (begun) tiles--, advance<N>(r);
#pragma unroll 1
    for (int tile = tiles - 1; tile >= 0; tile--, advance<N>(r)) {
        mbarrier_wait(barrier_of(empty, r), r.parity ^ 1);
        load_rows<KEYS>(at + r.stage * TILE_BYTES, map, barrier_of(full, r), head, tile * KEYS, b);
    }
}
/* `items`: the number of items that consumer w has processed. */
DEVICE void load_queries(u32 base, const tensor_map *map, const item &i, int w, int items)
{
    load_rows<64>(own_rows(base, w, items), map, own_barrier(base + Q_FULL, w, items), i.h,
                  i.row + 64 * w, i.b);
}
/* Requests the operands of the first wgmma early. All blocks request theirs at once, so these loads
 * are slow. */
DEVICE void begin(u32 base, const tensor_map *q_map, const tensor_map *k_map, int T, int H, int BH,
                  int heads_at_once)
{
    item i = item_at(blockIdx.x, 0, T, H, BH, heads_at_once);
    UNROLL for (int w = 0; w < CONSUMERS; w++)
        if (takes_part(i, w)) load_queries(base, q_map, i, w, 0);
    load_rows<KEYS>(base + AT_K, k_map, base + K_FULL, H + i.h / GROUP, (i.tiles - 1) * KEYS, i.b);
}
/* Takes items and loads their queries and keys, except what begin() requested. One thread. */
DEVICE void produce_keys(u32 base, const tensor_map *q_map, const tensor_map *k_map, int T, int H,
                         int BH, int heads_at_once)
{
    ring r = {0, 0};
    int items[CONSUMERS] = {}, n = blockIdx.x;
#pragma unroll 1
    for (int count = 0;; count++) {
        put_item(base, count, n, T, H, BH, heads_at_once);
        item i = *item_in_slot(count);
        if (!i.tiles) break;
        UNROLL for (int w = 0; w < CONSUMERS; w++)
            if (takes_part(i, w)) {
                if (count) {
                    mbarrier_wait(own_barrier(base + Q_EMPTY, w, items[w]),
                                  items[w] / OWN_STAGES % 2 ^ 1);
                    load_queries(base, q_map, i, w, items[w]);
                }
                items[w]++;
            }
        load_tiles<false>(base, r, k_map, H + i.h / GROUP, i.b, i.tiles, count == 0);
    }
    finish_items();
}
DEVICE void produce_values(u32 base, const tensor_map *v_map, int H)
{
    ring r = {0, 0};
    item i;
#pragma unroll 1
    for (int count = 0; (i = read_item(base, count)).tiles; count++) {
        release_item(base, count);
        load_tiles<true>(base, r, v_map, H + (H + i.h) / GROUP, i.b, i.tiles, false);
    }
}

struct position {
    ring k, v;
    u32 base;
    int w, items; /* the consumer's number; the number of items that it has processed */
};

/* Moves a descriptor by `bytes`; the addition never carries into the upper half. */
DEVICE u64 offset_by(u64 descriptor, int bytes)
{
    return (descriptor & ~0xffffffffull) | (u32)((u32)descriptor + bytes / 16);
}
/* s = q k^T for the first 2 E keys of a tile. */
template <int E> DEVICE void start_scores(float (&s)[E], const position &c)
{
    u64 q = wgmma_descriptor<SWIZZLE>(own_rows(c.base, c.w, c.items), 16, 8 * PITCH);
    u64 k = wgmma_descriptor<SWIZZLE>(c.base + AT_K + c.k.stage * TILE_BYTES, 16, 8 * PITCH);
    wgmma_fence();
    UNROLL for (int j = 0; j < HEAD / 16; j++) {
        constexpr int STEPS = WIDTH / 16;
        wgmma_ss<2 * E, 0, 0>(s, offset_by(q, j / STEPS * 64 * PITCH + j % STEPS * 32),
                          offset_by(k, j / STEPS * KEYS * PITCH + j % STEPS * 32), j > 0);
    }
    wgmma_commit();
}
/* o += p v */
DEVICE void start_values(rows &r, const position &c, const ring &at)
{
    u64 v =
        wgmma_descriptor<SWIZZLE>(c.base + AT_V + at.stage * TILE_BYTES, KEYS * PITCH, 8 * PITCH);
    wgmma_fence();
    UNROLL for (int j = 0; j < KEYS / 16; j++)
        wgmma_rs<HEAD, 1>(r.o, r.p[j], offset_by(v, j * 16 * PITCH), true);
    wgmma_commit();
}

DEVICE bool leader()
{
    return threadIdx.x % WARPGROUP == 0;
}
DEVICE void wait_turn(const position &c)
{
    if (TURNS) named_barrier_sync(TURN + c.w, 2 * WARPGROUP);
}
DEVICE void pass_turn(const position &c)
{
    if (TURNS) named_barrier_arrive(TURN + (c.w + 1 == CONSUMERS ? 0 : c.w + 1), 2 * WARPGROUP);
}
/* Marks the tile as read by this consumer. */
DEVICE void release(u32 empty, const ring &r)
{
    if (leader()) mbarrier_arrive(barrier_of(empty, r));
}

/* Processes the first tile, of which N keys are used. Rows start at multiples of 64, so only this
 * tile contains the diagonal, and no other tile is masked. */
template <int N>
DEVICE void first_tile(rows &r, position &c, const drop &d, int key, int T, float scale)
{
    kept a;
    float s[N / 2];
    mbarrier_wait(barrier_of(c.base + K_FULL, c.k), c.k.parity);
    start_scores(s, c);
    random_tile(a, r, d, key);
    wgmma_wait<0>();
    wgmma_hold(s);
    release(c.base + K_EMPTY, c.k);
    advance(c.k);
    /* If more than 64 keys are used, all rows see the first 64. */
    mask_scores<CAUSAL && KEYS == 128 && N == KEYS ? 64 : 0>(s, r, key, T);
    lift_top<true>(r, s, scale);
    exponentials<true>(r, s, scale);
    mbarrier_wait(barrier_of(c.base + V_FULL, c.v), c.v.parity);
    pack_weights(r, s, a);
}
/* Computes the scores of the next tile and the output of the previous one. */
template <bool LIFT>
DEVICE void next_tile(rows &r, position &c, const drop &d, int key, float scale)
{
    kept a;
    ring before = c.v;
    advance<V_STAGES>(c.v);
    mbarrier_wait(barrier_of(c.base + K_FULL, c.k), c.k.parity);
    wait_turn(c);
    float s[KEYS / 2];
    start_scores(s, c);
    start_values(r, c, before);
    pass_turn(c);
    random_tile(a, r, d, key);
    wgmma_wait<1>();
    wgmma_hold(s);
    release(c.base + K_EMPTY, c.k);
    advance(c.k);
    if (LIFT) lift_top<false>(r, s, scale);
    exponentials<LIFT>(r, s, scale);
    mbarrier_wait(barrier_of(c.base + V_FULL, c.v), c.v.parity);
    wgmma_wait<0>();
    wgmma_hold(r.o);
    release(c.base + V_EMPTY, before);
    if (LIFT) lift_output(r);
    pack_weights(r, s, a);
}
DEVICE void last_tile(rows &r, position &c)
{
    start_values(r, c, c.v);
    wgmma_wait<0>();
    wgmma_hold(r.o);
    release(c.base + V_EMPTY, c.v);
    advance<V_STAGES>(c.v);
}

/* Skips tiles that none of the consumer's rows sees, but takes the consumer's turns. The leader
 * waits until each tile has arrived. */
DEVICE void skip_tiles(position &c, int tiles, int turns)
{
#pragma unroll 1
    for (int i = 0; i < tiles; i++) {
        if (i < turns) wait_turn(c), pass_turn(c);
        if (leader()) {
            mbarrier_wait(barrier_of(c.base + K_FULL, c.k), c.k.parity);
            mbarrier_wait(barrier_of(c.base + V_FULL, c.v), c.v.parity);
        }
        release(c.base + K_EMPTY, c.k);
        release(c.base + V_EMPTY, c.v);
        advance(c.k);
        advance<V_STAGES>(c.v);
    }
    if (tiles) named_barrier_sync(OWN + c.w, WARPGROUP);
}

/* In an item's first run, true if sums or outputs of the consumer's rows are too large; marks the
 * item as failed. */
DEVICE bool outgrown(const rows &r, const position &c, item *of)
{
    if (!warp_word(&of->redo)) {
        float zero_if_finite = 0; /* 0 * o is NaN if o is not finite */
        bool far = !(r.sum[0] < LIMIT && r.sum[1] < LIMIT);
        UNROLL for (int n = 0; n < HEAD / 2; n++) zero_if_finite += 0 * r.o[n];
        if (__any_sync(~0u, far || zero_if_finite != 0) && threadIdx.x % WARP == 0)
            atomicOr(&of->failed, 1u << c.w);
    }
    named_barrier_sync(OWN + c.w, WARPGROUP);
    return warp_word(&of->failed) >> c.w & 1;
}
/* Writes y = factor o / sum, through shared memory, and log-sum-exp; factor: dropout's scale. */
DEVICE void finish(rows &r, const position &c, const tensor_map *y_map, float *lse, int b, int h,
                   int row, int T, float scale, float factor)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP % 4;
    u32 to = own_rows(c.base, c.w, c.items);
    UNROLL for (int i = 0; i < 2; i++) {
        float sum = r.sum[i];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (lane % 4 == 0 && r.first + 8 * i < T)
            lse[r.first + 8 * i] = (r.top[i] * scale + lg2_approx(sum)) * LN_2;
        r.sum[i] = factor / sum;
    }
    UNROLL for (int j = 0; j < HEAD / 16; j++) {
        constexpr int EACH = WIDTH / 16; /* per panel */
        u32 two[4];
        UNROLL for (int i = 0; i < 4; i++)
            two[i] =
                pack_bf16(r.o[8 * j + 2 * i] * r.sum[i % 2], r.o[8 * j + 2 * i + 1] * r.sum[i % 2]);
        stmatrix_x4(to + j / EACH * 64 * PITCH +
                        panel_chunk<SWIZZLE>(16 * warp + lane % 16, j % EACH * 2 + lane / 16),
                    two);
    }
    fence_async();
    named_barrier_sync(OWN + c.w, WARPGROUP);
    if (leader()) {
        UNROLL for (int p = 0; p < PANELS; p++)
            tma_store(y_map, to + p * 64 * PITCH, p * WIDTH, h, row, b, 0);
        tma_store_commit();
    }
}

/* Releases the rows of item `items` once the stores of its output have read them. */
DEVICE void release_own(const position &c, int items)
{
    if (!leader()) return;
    tma_store_wait_read<0>();
    mbarrier_arrive(own_barrier(c.base + Q_EMPTY, c.w, items));
}

DEVICE void consume(u32 base, int w, const tensor_map *y_map, float *lse, int T, int H, float scale,
                    drop d, float factor)
{
    position c = {{0, 0}, {0, 0}, base, w, 0};
    rows r;
    item i;
    if (TURNS && w == CONSUMERS - 1) pass_turn(c);
#pragma unroll 1
    for (int count = 0;; count++) {
        wait_item(base, count);
        i = warp_item(count);
        if (!i.tiles) break;
        int row = i.row + 64 * w;
        int tiles = takes_part(i, w) ? tiles_of(row + 64, T) : 0;
        skip_tiles(c, i.tiles - tiles, i.tiles - 1);
        if (!tiles) {
            if (threadIdx.x % WARP == 0) release_item(base, count);
            continue;
        }
        d.bh = i.b * H + i.h;
        r.first = row + threadIdx.x / WARP % 4 * 16 + threadIdx.x % WARP / 4;
        UNROLL for (int j = 0; j < HEAD / 2; j++) r.o[j] = 0;
        r.top[0] = r.top[1] = -INFINITY_F;
        r.sum[0] = r.sum[1] = 0;
        mbarrier_wait(own_barrier(base + Q_FULL, w, c.items), c.items / OWN_STAGES % 2);
#if KEYS % 128 == 0
        if ((CAUSAL ? row + 64 : T) - (tiles - 1) * KEYS <= KEYS / 2)
            first_tile<KEYS / 2>(r, c, d, (tiles - 1) * KEYS, T, scale);
        else
#endif
            first_tile<KEYS>(r, c, d, (tiles - 1) * KEYS, T, scale);
        /* The previous item's output is in flight. */
        if (OWN_STAGES == 2 && c.items) release_own(c, c.items - 1);
        if (!i.redo)
#pragma unroll 1
            for (int tile = tiles - 2; tile >= 0; tile--)
                next_tile<false>(r, c, d, tile * KEYS, scale);
        else
#pragma unroll 1
            for (int tile = tiles - 2; tile >= 0; tile--)
                next_tile<true>(r, c, d, tile * KEYS, scale);
        last_tile(r, c);
        if (!outgrown(r, c, item_in_slot(count))) {
            i = warp_item(count); /* reloaded: saves registers */
            finish(r, c, y_map, lse + (i64)(i.b * H + i.h) * T, i.b, i.h, row, T, scale, factor);
        }
        if (threadIdx.x % WARP == 0) release_item(base, count);
        if (OWN_STAGES == 1) release_own(c, c.items);
        c.items++;
    }
    if (TURNS && w == 0) wait_turn(c);
    if (leader()) tma_store_wait_read<0>();
}

/* scale includes log2(e); less and carry: see dropout_kept; keep_scale: factor of kept elements.
 * Boxes have WIDTH columns and 64 rows (q_map, y_map) or KEYS (k_map). */
KERNEL_MIN(THREADS, 1)
attention_forward(const __grid_constant__ tensor_map q_map,
                  const __grid_constant__ tensor_map k_map,
                  const __grid_constant__ tensor_map y_map, const int *step, float *lse, int T,
                  int H, int BH, int heads_at_once, float scale, u32 seed, u32 site, u32 less,
                  u32 carry, float keep_scale)
{
    u32 base = shared_address(shared_memory);
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0);
    if (threadIdx.x == 0) {
        tma_prefetch_map(&q_map);
        tma_prefetch_map(&k_map);
        tma_prefetch_map(&y_map);
        UNROLL for (int n = 0; n < OWN_STAGES * CONSUMERS; n++) {
            mbarrier_init(base + Q_FULL + 8 * n, 1);
            mbarrier_init(base + Q_EMPTY + 8 * n, 1);
        }
        UNROLL for (int s = 0; s < STAGES; s++) {
            mbarrier_init(base + K_FULL + 8 * s, 1);
            mbarrier_init(base + K_EMPTY + 8 * s, CONSUMERS);
        }
        UNROLL for (int s = 0; s < V_STAGES; s++) {
            mbarrier_init(base + V_FULL + 8 * s, 1);
            mbarrier_init(base + V_EMPTY + 8 * s, CONSUMERS);
        }
        UNROLL for (int i = 0; i < 2; i++) {
            mbarrier_init(base + ITEM_FULL + 8 * i, 1);
            mbarrier_init(base + ITEM_EMPTY + 8 * i, WARPGROUP / WARP * CONSUMERS + 1);
        }
        fence_barrier_init();
        begin(base, &q_map, &k_map, T, H, BH, heads_at_once);
    }
    __syncthreads();
    if (warp < 4) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce_keys(base, &q_map, &k_map, T, H, BH, heads_at_once);
        if (threadIdx.x == WARP) produce_values(base, &k_map, H);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        drop d = {seed, site, DROPOUT ? (u32)*step : 0, 0, less, carry};
        consume(base, warp / 4 - 1, &y_map, lse, T, H, scale, d, keep_scale);
    }
}
