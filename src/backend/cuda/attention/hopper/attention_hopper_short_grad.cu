/* attention_hopper_short_grad.cu - causal attention backward over at most ROWS rows for sm_90a.
 *
 * dy (B,T,C), qkv (B,T,3C), y (B,T,C), log-sum-exp (B,H,T) -> dqkv (B,T,3C).
 *     S^T = K Q^T, P^T = exp(S^T - lse), dP^T = V dY^T, dS^T = P^T (dP^T - delta),
 *     dV += P^T dY, dK += dS^T Q, dQ += dS K.
 * A block has several heads in turn. A head has ten tiles of 64 x 64 pairs on and below the
 * diagonal. Each of two warpgroups has five of these tiles: the tiles of one strip of keys, then of
 * another, so that its registers hold dK and dV of one strip at a time. dS goes through shared
 * memory. In the step that follows each warpgroup computes one tile's matmul for dQ, in an order in
 * which its registers hold dQ of one strip of queries at a time:
 *
 *     step                            0      1     2            3        4            after
 *     warpgroup 0   queries, keys     0,0    1,0   2,0          3,0      3,3
 *                   dQ of, keys              0,0   2,1          2,0      2,2
 *                   to memory                dQ 0               dK,dV 0  dQ 2, dK,dV 3
 *     warpgroup 1   queries, keys     1,1    2,1   3,1          2,2      3,2
 *                   dQ of, keys              1,1   1,0          3,1      3,0          3,2 and 3,3
 *                   to memory                      dQ, dK,dV 1           dK,dV 2      dQ 3
 *
 * A third warpgroup has a thread that requests copies and three warps that compute delta =
 * rowsum(dy y). The next head's rows arrive meanwhile: the first two strips of a head, except Q of
 * the second, have two buffers.
 *
 * Bound by memory, 8 D elements a row; then by tensor cores, 5 matmuls of 2 D clocks for each tile,
 * and by instructions, with dropout 12 an element. Constants: HEAD_SIZE (16, 32, 64), DROPOUT. */
#define GROUP       1
#define CAUSAL      1
#define CONSUMERS   2
#define TILE_ROWS   64
#define STAGES      1
#define ITEM_STAGES 1
#include "attention_hopper_grad.cuh"

enum {
    TILES = 4, ROWS = TILES * TILE, STEPS = 5,
    KEYS = 0, VALUES, DY, QUERIES, /* slots of a strip */
    DOUBLED = 7,                     /* the first 7 of the strips' slots exist twice */
    SLOTS = 4 * TILES + DOUBLED, DS_BYTES = 2 * TILE * TILE,
    AT_DS = (SLOTS * TILE_BYTES + 1023) / 1024 * 1024, /* of each warpgroup, two steps */
    AT_STATS = AT_DS + 2 * CONSUMERS * DS_BYTES, AT_BARRIERS = AT_STATS + TILES * STATS_BYTES,
    FULL = AT_BARRIERS,                 /* for each group of copies, of even and of odd heads */
    COPIES = 6,                         /* strips 0, 1; Q and dY of 2, of 3; K and V of 2, of 3 */
    STATS_FULL = FULL + 2 * 8 * COPIES, /* of each strip */
    STEP_DONE = STATS_FULL + 8 * TILES, /* of each warpgroup, for even and for odd steps */
    FREE = STEP_DONE + 8 * 2 * CONSUMERS,
    /* Barriers that report free slots: Q of strip 1; Q and dY of strip 2; Q and dY of strip 3; all
     * rows of a head. */
    Q1_FREE = 0, THIRD_FREE, LAST_FREE, HEAD_DONE, FREES,
    HELPERS = 3, /* warps */
    HELPER_REGISTERS = 88, WORKER_REGISTERS = 208,
};
static_assert(TILE_BYTES % 1024 == 0, "strips must start at a whole swizzle");

struct problem {
    const bf16 *y;
    const float *lse;
    int T, H, heads;
    float unscaled; /* 1 / the scale of kept elements, for delta */
};

/* The nibble of a step in the warpgroup's table, `first` or `second`. */
DEVICE int in_table(int first, int second, int group, int step)
{
    return (group ? second : first) >> 4 * step & 15;
}
DEVICE u32 slot_address(u32 base, int strip, int what, int n)
{
    int i = 4 * strip + what;
    return base + (i + (i < DOUBLED && n % 2 ? 4 * TILES : 0)) * TILE_BYTES;
}
DEVICE u32 full_of(u32 base, int copy, int n)
{
    return base + FULL + 8 * (2 * copy + n % 2);
}
DEVICE u32 ds_of(u32 base, int group, int count)
{
    return base + AT_DS + (2 * group + count % 2) * DS_BYTES;
}

/* --- the thread that requests copies --- */
DEVICE void request(u32 base, const tensor_map *map, int copy, int strip, int what, int n, int head,
                    int b)
{
    load_rows<TILE>(slot_address(base, strip, what, n), map, full_of(base, copy, n), head,
                    strip * TILE, b);
}
DEVICE void produce(u32 base, const problem &s, const tensor_map *rows, const tensor_map *dy)
{
    int n = 0;
#pragma unroll 1
    for (int head = blockIdx.x; head < s.heads; head += gridDim.x, n++) {
        int b = head / s.H, h = head - b * s.H, before = n % 2 ^ 1;
        mbarrier_expect(full_of(base, 0, n), 4 * TILE_BYTES);
        mbarrier_expect(full_of(base, 1, n), 4 * TILE_BYTES);
#pragma unroll 1
        for (int strip = 0; strip < 2; strip++) {
            if (strip == 0) request(base, rows, 0, 0, QUERIES, n, h, b);
            request(base, rows, strip, strip, KEYS, n, s.H + h, b);
            request(base, dy, strip, strip, DY, n, h, b);
            request(base, rows, strip, strip, VALUES, n, 2 * s.H + h, b);
        }
        if (n > 0) mbarrier_wait(base + FREE + 8 * Q1_FREE, before);
        request(base, rows, 1, 1, QUERIES, n, h, b);
#pragma unroll 1
        for (int strip = 2; strip < TILES; strip++) {
            if (n > 0) mbarrier_wait(base + FREE + 8 * (THIRD_FREE + strip - 2), before);
            mbarrier_expect(full_of(base, strip, n), 2 * TILE_BYTES);
            request(base, rows, strip, strip, QUERIES, n, h, b);
            request(base, dy, strip, strip, DY, n, h, b);
        }
        if (n > 0) mbarrier_wait(base + FREE + 8 * HEAD_DONE, before);
#pragma unroll 1
        for (int strip = 2; strip < TILES; strip++) {
            mbarrier_expect(full_of(base, strip + 2, n), 2 * TILE_BYTES);
            request(base, rows, strip + 2, strip, KEYS, n, s.H + h, b);
            request(base, rows, strip + 2, strip, VALUES, n, 2 * s.H + h, b);
        }
    }
}

/* --- the warps that compute statistics --- */
DEVICE void prefetch_y(const problem &s, int head, int thread)
{
    if (head >= s.heads) return;
    int b = head / s.H, h = head - b * s.H;
    const bf16 *y = s.y + (i64)b * s.T * (s.H * D) + h * D;
#pragma unroll 1
    for (int t = thread; t < s.T; t += HELPERS * WARP) prefetch_l2(y + (i64)t * (s.H * D));
}
/* A thread's part of a strip: TIMES chunks of y, and a row's log-sum-exp. */
enum { CHUNKS = D / 8, PASS = WARP / CHUNKS, TIMES = ceil_div(TILE / PASS, HELPERS) };
struct part {
    uint4 y[TIMES];
    float lse;
};
DEVICE void load_part(part &w, const problem &s, int head, int strip, int thread)
{
    int b = head / s.H, h = head - b * s.H, row = thread / CHUNKS, left = s.T - strip * TILE;
    const bf16 *y = s.y + (i64)(b * s.T + strip * TILE) * (s.H * D) + h * D + thread % CHUNKS * 8;
    UNROLL for (int i = 0; i < TIMES; i++) {
        int r = row + i * HELPERS * PASS;
        w.y[i] = make_uint4(0, 0, 0, 0);
        if (r < TILE && r < left) w.y[i] = *(const uint4 *)(y + (i64)r * (s.H * D));
    }
    w.lse = INFINITY_F;
    if (thread < min(TILE, left)) w.lse = s.lse[(i64)head * s.T + strip * TILE + thread];
}
/* Computes each strip's statistics once dY has arrived; loads the next strip's y before that. */
DEVICE void summarize(u32 base, const problem &s, int thread)
{
    float *stats = (float *)(shared_memory - shared_address(shared_memory) + base + AT_STATS);
    part w;
    int n = 0;
    prefetch_y(s, blockIdx.x, thread);
    load_part(w, s, blockIdx.x, 0, thread);
#pragma unroll 1
    for (int head = blockIdx.x; head < s.heads; head += gridDim.x, n++) {
        prefetch_y(s, head + gridDim.x, thread);
#pragma unroll 1
        for (int strip = 0; strip < TILES; strip++) {
            int here = opaque(thread), row = here / CHUNKS, chunk = here % CHUNKS;
            float sum[TIMES], *to = stats + strip * 2 * STATS;
            mbarrier_wait(full_of(base, strip, n), n / 2 % 2);
            u32 dy = slot_address(base, strip, DY, n);
            UNROLL for (int i = 0; i < TIMES; i++) {
                int r = row + i * HELPERS * PASS;
                u32 a[4] = {w.y[i].x, w.y[i].y, w.y[i].z, w.y[i].w}, e[4];
                load_shared_16(e, dy + panel_chunk<SWIZZLE>(r < TILE ? r : 0, chunk));
                sum[i] = 0;
                UNROLL for (int k = 0; k < 4; k++) {
                    sum[i] += __uint_as_float(a[k] << 16) * __uint_as_float(e[k] << 16);
                    sum[i] +=
                        __uint_as_float(a[k] & 0xffff0000u) * __uint_as_float(e[k] & 0xffff0000u);
                }
            }
            float lse = w.lse * LOG2_E;
            if (strip + 1 < TILES)
                load_part(w, s, head, strip + 1, here);
            else if (head + (int)gridDim.x < s.heads)
                load_part(w, s, head + gridDim.x, 0, here);
            UNROLL for (int k = 1; k < CHUNKS; k *= 2)
                UNROLL for (int i = 0; i < TIMES; i++) sum[i] += __shfl_xor_sync(~0u, sum[i], k);
            if (here < TILE) to[here] = lse;
            UNROLL for (int i = 0; i < TIMES; i++)
                if (chunk == 0 && row + i * HELPERS * PASS < TILE)
                    to[STATS + row + i * HELPERS * PASS] = sum[i] * s.unscaled;
            release(base + STATS_FULL + 8 * strip, here % WARP);
        }
    }
}

/* --- the warpgroups that compute --- */
struct dropout_key {
    u32 seed, site, step, less, carry;
};
struct worker {
    u32 base;
    int group, thread, n, head; /* its n-th head */
    float factor, scale, keep_scale;
    dropout_key d;
};
/* The sign bit of a byte is set if its element, one of a thread's 32 elements, is kept. */
struct kept {
    u32 w[DROPOUT ? TILE / 8 : 1];
};
DEVICE void random_tile(kept &a, const worker &o, int head, int queries, int keys)
{
#if DROPOUT
    int warp = o.thread / WARP, lane = o.thread % WARP;
    UNROLL for (int j = 0; j < TILE / 32; j++) {
        drop_bytes r = random_bytes<true>(o.d.seed, o.d.site, o.d.step, head, queries * 4 + 2 * j,
                                          keys * 4 + warp, lane);
        UNROLL for (int i = 0; i < 4; i++)
            a.w[4 * j + i] = dropout_kept(r.w[i / 2][i % 2], o.d.less, o.d.carry);
    }
    computed(a.w);
#endif
}
/* Sets scores of queries before the key to -inf. */
DEVICE void mask(scores &s, const worker &o)
{
    int lane = o.thread % WARP, row = o.thread / WARP * 16 + lane / 4 - lane % 4 * 2;
    UNROLL for (int i = 0; i < TILE / 2; i++)
        if (i / 4 * 8 + i % 2 < row + i / 2 % 2 * 8) s[i] = -INFINITY_F;
}
/* Replaces S by P, negative where dropped, and packs P into `a`, zero where dropped. */
DEVICE void probabilities(scores &s, kept_scores &a, const kept &keep, const float *stats,
                          float factor)
{
    UNROLL for (int n = 0; n < TILE / 8; n++) {
        float2 lse = *(const float2 *)(stats + 8 * n);
        UNROLL for (int i = 0; i < 4; i++) {
            float p = ex2_approx(s[4 * n + i] * factor - (i % 2 ? lse.y : lse.x));
#if DROPOUT
            p = __uint_as_float(__float_as_uint(p) ^
                                (~(keep.w[n] << 8 * (3 - (i % 2 * 2 + i / 2))) & 0x80000000u));
#endif
            s[4 * n + i] = p;
        }
        UNROLL for (int i = 0; i < 2; i++) {
            float low = s[4 * n + 2 * i], high = s[4 * n + 2 * i + 1];
            a[n / 2][n % 2 * 2 + i] =
                DROPOUT ? pack_bf16_positive(low, high) : pack_bf16(low, high);
        }
    }
}
/* dS, packed. */
DEVICE void gradients(kept_scores &e, const scores &p, const scores &dp, const float *stats)
{
    UNROLL for (int n = 0; n < TILE / 8; n++) {
        float2 delta = *(const float2 *)(stats + STATS + 8 * n);
        float ds[4];
        UNROLL for (int i = 0; i < 4; i++) {
            float less = i % 2 ? delta.y : delta.x, a = p[4 * n + i];
            ds[i] = DROPOUT ? fmaxf(a, 0) * dp[4 * n + i] - fabsf(a) * less
                            : a * (dp[4 * n + i] - less);
        }
        UNROLL for (int i = 0; i < 2; i++)
            e[n / 2][n % 2 * 2 + i] = pack_bf16(ds[2 * i], ds[2 * i + 1]);
    }
}
/* Stores dS (rows: keys) where both warpgroups read it. */
DEVICE void keep_scores(u32 to, const kept_scores &e, int thread)
{
    int lane = thread % WARP;
    to += panel_chunk(16 * (thread / WARP) + lane % 16, lane / 16);
    UNROLL for (int k = 0; k < TILE / 16; k++) stmatrix_x4(to ^ 32 * k, e[k]);
}
/* dQ of 64 queries: dS (rows: keys) times the rows of K. */
DEVICE void add_queries(sums &dq, u32 ds, u32 keys, bool add)
{
    u64 a = wgmma_descriptor(ds, 16, 1024),
        b = wgmma_descriptor<SWIZZLE>(keys, TILE * PITCH, 8 * PITCH);
    UNROLL for (int k = 0; k < TILE / 16; k++)
        wgmma_ss<D, 1, 1>(dq, a + k * 128, b + k * PITCH, add || k > 0);
}
/* sum (+)= a b; b: the rows of a strip. */
DEVICE void add_strip(sums &sum, const kept_scores &a, u32 rows, bool add)
{
    u64 b = wgmma_descriptor<SWIZZLE>(rows, TILE * PITCH, 8 * PITCH);
    UNROLL for (int k = 0; k < TILE / 16; k++)
        wgmma_rs<D, 1>(sum, a[k], b + k * PITCH, add || k > 0);
}
/* Waits until both warpgroups have ended step `count`. */
DEVICE void wait_step(const worker &o, int count)
{
    mbarrier_wait(o.base + STEP_DONE + 8 * (count % 2), count / 2 % 2);
    mbarrier_wait(o.base + STEP_DONE + 8 * (2 + count % 2), count / 2 % 2);
}
DEVICE void wait_full(const worker &o, int copy, int n)
{
    mbarrier_wait(full_of(o.base, copy, n), n / 2 % 2);
}
/* Stores complete sums to memory through rows in shared memory that are no longer read. Each warp
 * stores its 16 rows as soon as its matmuls end, without waiting for other warps: it overwrites
 * only its own rows of left operands, and the other slots were last read by an earlier step's
 * wgmma. */
DEVICE void keep_sums(const worker &o, const tensor_map *map, u32 to, const sums &sum, float scale,
                      int head, int strip, int b)
{
    keep_rows(to, sum, scale, o.thread);
    fence_async();
    __syncwarp();
    int row = o.thread / WARP * 16;
    if (o.thread % WARP == 0) tma_store(map, to + row * PITCH, 0, head, strip * TILE + row, b, 0);
}
/* Stores the sums that the bit mask `what` selects: 1 selects dQ of the strip `queries`, 2 selects
 * dK and dV of the strip `keys`. */
DEVICE void flush(const worker &o, const tensor_map *map, int what, int queries, int keys, int H,
                  const sums &dq, const sums &dk, const sums &dv)
{
    int b = o.head / H, h = o.head - b * H, g = o.group;
    if (o.thread % WARP == 0) tma_store_wait_read<0>();
    __syncwarp();
    if (what & 1) keep_sums(o, map, slot_address(o.base, g, DY, o.n), dq, o.scale, h, queries, b);
    if (what & 2) {
        u32 to = keys == 3 ? slot_address(o.base, 3, VALUES, o.n)
                           : slot_address(o.base, 0, g ? QUERIES : DY, o.n);
        keep_sums(o, map, to, dk, o.scale, H + h, keys, b);
        keep_sums(o, map, slot_address(o.base, g, VALUES, o.n), dv, o.keep_scale, 2 * H + h, keys,
                  b);
    }
    if (o.thread % WARP == 0) tma_store_commit();
}

/* A warpgroup's position: step i of its n-th head, and the strips of its tile. */
struct position {
    int n, i, head, queries, keys;
};
DEVICE position position_at(int group, int n, int i, int head)
{
    position p = {n, i, head, in_table(0x33210, 0x32321, group, i),
                  in_table(0x30000, 0x22111, group, i)};
    return p;
}
/* Starts the scores of a tile once its operands and the operands of the step's dQ have arrived. */
DEVICE void begin(scores &s, const worker &o, const position &p)
{
    wait_full(o, in_table(0x53210, 0x44321, o.group, p.i), p.n);
    wait_full(o, in_table(0x43210, 0x44021, o.group, p.i), p.n);
    wgmma_forget(s);
    wgmma_fence();
    rows_by_rows(s, slot_address(o.base, p.keys, KEYS, p.n),
                 slot_address(o.base, p.queries, QUERIES, p.n));
    wgmma_commit();
}
/* Processes a tile whose scores and random bytes are complete, and completes the scores and random
 * bytes of the next tile. With DQ, also adds to dQ. */
template <bool DQ>
DEVICE void step(scores &s, kept &keep, sums &dq, sums &dk, sums &dv, const worker &o,
                 const position &p, const position &next)
{
    scores dp;
    kept_scores a, e;
    int g = o.group, i = p.i, count = o.n * STEPS + i, lane = o.thread % WARP;
    u32 at_q = slot_address(o.base, p.queries, QUERIES, o.n),
        at_do = slot_address(o.base, p.queries, DY, o.n);
    const float *stats =
        (const float *)(shared_memory - shared_address(shared_memory) + o.base + AT_STATS) +
        p.queries * 2 * STATS + lane % 4 * 2;
    wgmma_forget(dp);
    wgmma_fence();
    rows_by_rows(dp, slot_address(o.base, p.keys, VALUES, o.n), at_do);
    wgmma_commit();
    mbarrier_wait(o.base + STATS_FULL + 8 * p.queries, o.n % 2);
    if (p.queries == p.keys) mask(s, o);
    probabilities(s, a, keep, stats, o.factor);
    if (count > 0) wait_step(o, count - 1);
    wgmma_fence();
    bool add = in_table(0x01110, 0x10110, g, i);
    add_strip(dv, a, at_do, add);
    wgmma_commit();
    if (DQ) {
        u32 keys = slot_address(o.base, in_table(0x20100, 0x01010, g, i), KEYS, o.n);
        add_queries(dq, ds_of(o.base, i % 2 ? g : 1 - g, count - 1), keys,
                    in_table(0x11000, 0x10100, g, i));
        wgmma_commit();
    }
    wgmma_wait<1 + DQ>();
    wgmma_hold(dp);
    gradients(e, s, dp, stats);
    keep_scores(ds_of(o.base, g, count), e, o.thread);
    fence_async();
    wgmma_fence();
    add_strip(dk, e, at_q, add);
    wgmma_commit();
    begin(s, o, next);
    random_tile(keep, o, next.head, next.queries, next.keys);
    wgmma_wait<0>();
    wgmma_hold(s);
    wgmma_hold(dk);
    wgmma_hold(dv);
    if (DQ) wgmma_hold(dq);
    release(o.base + STEP_DONE + 8 * (2 * g + count % 2), lane);
    int free = in_table(0x27107, 0x21770, g, i); /* what this step frees; FREES or more: nothing */
    if (free < FREES) release(o.base + FREE + 8 * free, lane);
    if (i == 1 && o.n > 0) {
        if (lane == 0) tma_store_wait_read<0>();
        release(o.base + FREE + 8 * HEAD_DONE, lane);
    }
}
DEVICE void work(const problem &s, worker &o, const tensor_map *map)
{
    sums dq, dk, dv;
    scores sc;
    kept keep;
    o.n = 0;
    o.head = blockIdx.x;
    position p = position_at(o.group, 0, 0, o.head);
    random_tile(keep, o, o.head, p.queries, p.keys);
    begin(sc, o, p);
    wgmma_wait<0>();
    wgmma_hold(sc);
#pragma unroll 1
    for (; o.head < s.heads; o.head += gridDim.x, o.n++) {
        position next = position_at(o.group, o.n, 1, o.head);
        step<false>(sc, keep, dq, dk, dv, o, p, next);
#pragma unroll 1
        for (int i = 1; i < STEPS; i++) {
            p = next;
            if (i + 1 < STEPS)
                next = position_at(o.group, o.n, i + 1, o.head);
            else if (o.head + (int)gridDim.x < s.heads)
                next = position_at(o.group, o.n + 1, 0, o.head + gridDim.x);
            step<true>(sc, keep, dq, dk, dv, o, p, next);
            int what = in_table(0x32010, 0x20300, o.group, i);
            if (what) flush(o, map, what, o.group ? 1 : i == 1 ? 0 : 2, p.keys, s.H, dq, dk, dv);
        }
        p = next;
        if (o.group == 0) continue;
        int count = o.n * STEPS + STEPS - 1;
        wait_full(o, 5, o.n);
        wait_step(o, count);
        wgmma_fence();
        add_queries(dq, ds_of(o.base, 1, count), slot_address(o.base, 2, KEYS, o.n), true);
        add_queries(dq, ds_of(o.base, 0, count), slot_address(o.base, 3, KEYS, o.n), true);
        wgmma_commit();
        wgmma_wait<0>();
        wgmma_hold(dq);
        flush(o, map, 1, 3, 0, s.H, dq, dk, dv);
    }
    if (o.thread % WARP == 0) tma_store_wait_read<0>();
}

KERNEL_MIN(THREADS, 1)
attention_hopper_short_grad(const __grid_constant__ tensor_map rows,
                            const __grid_constant__ tensor_map dy,
                            const __grid_constant__ tensor_map dqkv, const bf16 *y,
                            const float *lse, const int *step_number, int T, int H, int heads,
                            float scale, u32 seed, u32 site, u32 less, u32 carry, float keep_scale)
{
    u32 base = shared_base();
    problem s = {y, lse, T, H, heads, 1 / keep_scale};
    int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * COPIES; i++) mbarrier_init(base + FULL + 8 * i, 1);
        for (int i = 0; i < TILES; i++) mbarrier_init(base + STATS_FULL + 8 * i, HELPERS);
        for (int i = 0; i < 2 * CONSUMERS; i++)
            mbarrier_init(base + STEP_DONE + 8 * i, WARPGROUP / WARP);
        for (int i = 0; i < FREES; i++) mbarrier_init(base + FREE + 8 * i, ARRIVALS);
        fence_barrier_init();
    }
    __syncthreads();
    if (group == CONSUMERS) {
        registers_dec<HELPER_REGISTERS>();
        int warp = threadIdx.x / WARP - CONSUMERS * WARPGROUP / WARP, lane = threadIdx.x % WARP;
        if (warp > 0)
            summarize(base, s, threadIdx.x - CONSUMERS * WARPGROUP - WARP);
        else if (lane == 0)
            produce(base, s, &rows, &dy);
    } else {
        registers_inc<WORKER_REGISTERS>();
        worker o;
        o.base = base;
        o.group = group;
        o.thread = threadIdx.x % WARPGROUP;
        o.factor = scale * LOG2_E;
        o.scale = scale * keep_scale;
        o.keep_scale = keep_scale;
        o.d.seed = seed, o.d.site = site, o.d.step = DROPOUT ? (u32)*step_number : 0,
        o.d.less = less, o.d.carry = carry;
        work(s, o, &dqkv);
    }
}
