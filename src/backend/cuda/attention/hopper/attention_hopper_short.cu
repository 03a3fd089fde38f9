/* attention_hopper_short.cu - causal attention over at most ROWS rows for sm_90a: qkv
 * (B,T,3,H,HEAD_SIZE) -> y (B,T,H,HEAD_SIZE), bf16, log-sum-exp (B,H,T) float.
 *
 * A block loads one head ahead. Each of four warpgroups has a strip of 64 queries of a head. From
 * one head to the next, warpgroups take strips in reverse order, so that all have equal work. A
 * warpgroup walks over the keys from the first on, 64 at a time; it computes the scores of the next
 * keys concurrently with the matmul of the current keys' weights and values. (Two warpgroups with
 * two strips each take a tenth longer.)
 *
 * Bound by memory (4 HEAD_SIZE elements a row), exponentials and random bits. HEAD_SIZE <= 64. */
#define CAUSAL 1
#define KEYS   64
#define HEAD   HEAD_SIZE
#include "hopper.cuh"

enum {
    WARPGROUP = 128, TILES = 4, CONSUMERS = TILES, THREADS = WARPGROUP * (CONSUMERS + 1),
    SWIZZLE = HEAD == 64 ? SWIZZLE_128B : HEAD == 32 ? SWIZZLE_64B : SWIZZLE_32B,
    PITCH = 2 * HEAD, TILE_BYTES = KEYS * PITCH,
    QUERIES = 0, VALUES_OF, KEYS_OF, PARTS, /* of a strip; its output overwrites its queries */
    HEAD_BYTES = TILES * PARTS * TILE_BYTES, AT_BARRIERS = 2 * HEAD_BYTES,
    FULL = AT_BARRIERS, /* one for each strip of even heads and of odd heads */
    FREE = FULL + 8 * 2 * TILES,
    CONSUMER_REGISTERS = 112, PRODUCER_REGISTERS = 32,
};
static_assert(HEAD == 16 || HEAD == 32 || HEAD == 64, "a row must be one panel");
extern __shared__ __align__(1024) u8 shared_memory[];
#include "attention_hopper_softmax.cuh"

DEVICE u32 slot_address(u32 base, int strip, int part, int n)
{
    return base + n % 2 * HEAD_BYTES + (PARTS * strip + part) * TILE_BYTES;
}
DEVICE u32 full_of(u32 base, int strip, int n)
{
    return base + FULL + 8 * (2 * strip + n % 2);
}

DEVICE void produce(u32 base, const tensor_map *map, int T, int H, int heads)
{
    int n = 0;
#pragma unroll 1
    for (int head = blockIdx.x; head < heads; head += gridDim.x, n++) {
        int b = head / H, h = head - b * H;
        if (n > 1) mbarrier_wait(base + FREE + 8 * (n % 2), n / 2 % 2 ^ 1);
#pragma unroll 1
        for (int strip = 0; strip * KEYS < T; strip++) {
            u32 full = full_of(base, strip, n);
            mbarrier_expect(full, PARTS * TILE_BYTES);
            tma_load(slot_address(base, strip, KEYS_OF, n), map, full, 0, H + h, strip * KEYS, b,
                     0);
            tma_load(slot_address(base, strip, QUERIES, n), map, full, 0, h, strip * KEYS, b, 0);
            tma_load(slot_address(base, strip, VALUES_OF, n), map, full, 0, 2 * H + h, strip * KEYS,
                     b, 0);
        }
    }
}

/* s = q k^T */
DEVICE void start_scores(float (&s)[KEYS / 2], u32 queries, u32 keys)
{
    u64 q = wgmma_descriptor<SWIZZLE>(queries, 16, 8 * PITCH),
        k = wgmma_descriptor<SWIZZLE>(keys, 16, 8 * PITCH);
    wgmma_forget(s);
    wgmma_fence();
    UNROLL for (int j = 0; j < HEAD / 16; j++) wgmma_ss<KEYS, 0, 0>(s, q + 2 * j, k + 2 * j, j > 0);
    wgmma_commit();
}
/* o += p v */
DEVICE void start_values(rows &r, u32 values)
{
    u64 v = wgmma_descriptor<SWIZZLE>(values, KEYS * PITCH, 8 * PITCH);
    wgmma_fence();
    UNROLL for (int j = 0; j < KEYS / 16; j++) wgmma_rs<HEAD, 1>(r.o, r.p[j], v + j * PITCH, true);
    wgmma_commit();
}

struct position {
    u32 base;
    int w, n, strip;
    bool released; /* the previous head is released, or there is none */
};
/* Releases the previous head's rows once the stores of its outputs have read them. */
DEVICE void release_head(position &c)
{
    if (!c.released && threadIdx.x % WARPGROUP == 0) {
        tma_store_wait_read<0>();
        mbarrier_arrive(c.base + FREE + 8 * (c.n % 2 ^ 1));
    }
    c.released = true;
}
DEVICE void begin(float (&s)[KEYS / 2], const position &c, int tile)
{
    mbarrier_wait(full_of(c.base, tile, c.n), c.n / 2 % 2);
    start_scores(s, slot_address(c.base, c.strip, QUERIES, c.n),
                 slot_address(c.base, tile, KEYS_OF, c.n));
}
/* Processes one more tile, concurrently with the previous tile's weights times values. */
DEVICE void step(rows &r, const position &c, const drop &d, int tile, int T, float scale)
{
    float s[KEYS / 2];
    kept a;
    begin(s, c, tile);
    start_values(r, slot_address(c.base, tile - 1, VALUES_OF, c.n));
    random_tile(a, r, d, tile * KEYS);
    wgmma_wait<1>();
    wgmma_hold(s);
    if (tile == c.strip) mask_scores<0>(s, r, tile * KEYS, T);
    lift_top<false>(r, s, scale);
    exponentials<true>(r, s, scale);
    wgmma_wait<0>();
    wgmma_hold(r.o);
    lift_output(r);
    pack_weights(r, s, a);
}
/* y = o / sum through shared memory; log-sum-exp. */
DEVICE void finish(rows &r, const position &c, const tensor_map *map, float *lse, int h, int b,
                   int T, float scale, float factor)
{
    int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP % 4;
    u32 to = slot_address(c.base, c.strip, QUERIES, c.n);
    UNROLL for (int i = 0; i < 2; i++) {
        float sum = r.sum[i];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (lane % 4 == 0 && r.first + 8 * i < T)
            lse[r.first + 8 * i] = (r.top[i] * scale + lg2_approx(sum)) * LN_2;
        r.sum[i] = factor / sum;
    }
    UNROLL for (int j = 0; j < HEAD / 16; j++) {
        u32 two[4];
        UNROLL for (int i = 0; i < 4; i++)
            two[i] =
                pack_bf16(r.o[8 * j + 2 * i] * r.sum[i % 2], r.o[8 * j + 2 * i + 1] * r.sum[i % 2]);
        stmatrix_x4(to + panel_chunk<SWIZZLE>(16 * warp + lane % 16, j * 2 + lane / 16), two);
    }
    fence_async();
    named_barrier_sync(1 + c.w, WARPGROUP);
    if (threadIdx.x % WARPGROUP == 0) {
        tma_store(map, to, 0, h, c.strip * KEYS, b, 0);
        tma_store_commit();
    }
}
DEVICE void consume(position &c, const tensor_map *map, float *lse, int T, int H, int heads,
                    float scale, drop d, float factor)
{
    rows r;
    c.n = 0;
    c.released = true;
#pragma unroll 1
    for (int head = blockIdx.x; head < heads; head += gridDim.x, c.n++) {
        int b = head / H, h = head - b * H;
        d.bh = head;
        c.strip = c.n % 2 ? TILES - 1 - c.w : c.w;
        if (c.strip * KEYS < T) {
            r.first = c.strip * KEYS + threadIdx.x / WARP % 4 * 16 + threadIdx.x % WARP / 4;
            UNROLL for (int j = 0; j < HEAD / 2; j++) r.o[j] = 0;
            r.top[0] = r.top[1] = -INFINITY_F;
            r.sum[0] = r.sum[1] = 0;
            {
                float s[KEYS / 2];
                kept a;
                random_tile(a, r, d, 0); /* while rows arrive */
                mbarrier_wait(full_of(c.base, c.strip, c.n), c.n / 2 % 2);
                begin(s, c, 0);
                release_head(c);
                wgmma_wait<0>();
                wgmma_hold(s);
                if (c.strip == 0) mask_scores<0>(s, r, 0, T);
                lift_top<true>(r, s, scale);
                exponentials<true>(r, s, scale);
                pack_weights(r, s, a);
            }
#pragma unroll 1
            for (int tile = 1; tile <= c.strip; tile++) step(r, c, d, tile, T, scale);
            start_values(r, slot_address(c.base, c.strip, VALUES_OF, c.n));
            wgmma_wait<0>();
            wgmma_hold(r.o);
            finish(r, c, map, lse + (i64)head * T, h, b, T, scale, factor);
        }
        release_head(c);
        c.released = false;
    }
    if (threadIdx.x % WARPGROUP == 0) tma_store_wait_read<0>();
}

/* scale includes log2(e); less and carry: see dropout_kept; keep_scale: factor of kept elements.
 * Boxes have HEAD_SIZE columns and 64 rows. */
KERNEL_MIN(THREADS, 1)
attention_hopper_short(const __grid_constant__ tensor_map qkv, const __grid_constant__ tensor_map y,
                       const int *step_number, float *lse, int T, int H, int heads, float scale,
                       u32 seed, u32 site, u32 less, u32 carry, float keep_scale)
{
    u32 base = (shared_address(shared_memory) + 1023) & ~1023u;
    int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * TILES; i++) mbarrier_init(base + FULL + 8 * i, 1);
        for (int i = 0; i < 2; i++) mbarrier_init(base + FREE + 8 * i, CONSUMERS);
        fence_barrier_init();
    }
    __syncthreads();
    if (group == CONSUMERS) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) produce(base, &qkv, T, H, heads);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        position c;
        c.base = base;
        c.w = group;
        drop d = {seed, site, DROPOUT ? (u32)*step_number : 0, 0, less, carry};
        consume(c, &y, lse, T, H, heads, scale, d, keep_scale);
    }
}
