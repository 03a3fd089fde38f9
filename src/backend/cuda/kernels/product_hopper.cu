/* product_hopper.cu - products with GELU or its gradient at the end, by Hopper's products of warpgroups, bf16 with sums in float:
 *
 *     product_gelu        y = gelu(x) and, with KEEP, x = a b + bias (M,N)
 *     product_gelu_grad   y = (a b) gelu'(x)
 *
 * a is (M,K), b is (K,N) or, with TRANSPOSED, (N,K). A block stays on its multiprocessor and takes tile after tile, neighbours sharing
 * their operands in the second cache. One thread loads by tensor maps, DEPTH of the sum at a time, into STAGES; each of two
 * consumers is a warpgroup with every second tile (ping-pong, as CUTLASS calls it): one's end is computed beside the other's products.
 *
 * The tensor cores need ROWS * COLUMNS / 32 clocks for a stage, in which ROWS + COLUMNS rows of 128 bytes come from the second
 * cache: that bounds it, at 49 bytes a clock for 128 x 192. The end is 8 to 15 instructions an element. Each warp takes its own
 * 16 rows by 64 columns at a time, through a panel of its own, so nobody waits for another.
 *
 *     TILES     times 64 rows of a tile: ROWS
 *     COLUMNS   of a tile: 64, 128, 192 or 256
 *     PANELS    of a warp: x as it comes, y as it goes
 *     WHAT      1: product_gelu, 2: product_gelu_grad
 *     TRANSPOSED, TANH, KEEP, BIAS (with T_BIAS)
 *
 * What lies behind a tensor's end is zeros where it is read and dropped where it is written. */
#include "gelu.cuh"
#include "hopper.cuh"

#if !defined TILES || !defined COLUMNS || !defined STAGES || !defined PANELS || !defined TRANSPOSED || !defined TANH || !defined WHAT
#error "the host says all of these"
#endif
#ifndef KEEP
#define KEEP 0
#endif
#ifndef BIAS
#define BIAS 0
#define T_BIAS float
#endif

enum {
    WARPGROUP = 128,
    CONSUMERS = 2,
    THREADS = WARPGROUP * (CONSUMERS + 1),
    DEPTH = 64, /* of the sum in a stage: a panel of 128 bytes a row */
    PITCH = 2 * DEPTH,
    ROWS = 64 * TILES,
    A_BYTES = ROWS * PITCH,
    B_BYTES = COLUMNS * PITCH,
    STAGE_BYTES = A_BYTES + B_BYTES,
    CHUNK = 64, /* columns that a warp ends at a time */
    CHUNKS = COLUMNS / CHUNK,
    PANEL_BYTES = 16 * 2 * CHUNK,
    AT_PANELS = STAGES * STAGE_BYTES,
    AT_BARRIERS = AT_PANELS + 4 * CONSUMERS * PANELS * PANEL_BYTES,
    FULL = AT_BARRIERS, /* of each stage */
    EMPTY = FULL + 8 * STAGES,
    CAME = EMPTY + 8 * STAGES, /* of each chunk of x under way */
    EACH = TILES * CHUNKS,       /* chunks of a tile for a warp */
    RING = CONSUMERS * PANELS,   /* panels of two warps together */
    CONSUMER_REGISTERS = 240,
    PRODUCER_REGISTERS = 24,
};
static_assert(COLUMNS % 64 == 0 && TILES * COLUMNS <= 384 && RING <= 2 * EACH && 4 * CONSUMERS * RING <= WARPGROUP, "");

extern __shared__ __align__(1024) u8 shared_memory[];

/* Which stage is next, and in which phase its barriers are. */
struct ring {
    int stage, parity;
};
DEVICE void advance(ring &r)
{
    if (++r.stage == STAGES) r.stage = 0, r.parity ^= 1;
}
DEVICE void advance_by(ring &r, int n)
{
    n += r.stage;
    r.stage = n % STAGES;
    r.parity ^= n / STAGES & 1;
}
DEVICE u32 barrier_of(u32 barriers, const ring &r)
{
    return barriers + 8 * r.stage;
}

/* Tiles are counted through `group` of them down, then to the right. */
struct place {
    int row, column;
};
struct shape {
    int M, N, K, group;
};
DEVICE int over(int n, int by)
{
    return (n + by - 1) / by;
}
DEVICE int tiles_of(const shape &s)
{
    return over(s.M, ROWS) * over(s.N, COLUMNS);
}

DEVICE place place_of(int n, const shape &s)
{
    int down = over(s.M, ROWS), per = s.group * over(s.N, COLUMNS), first = n / per * s.group, rest = n % per;
    int high = min(down - first, s.group);
    return {(first + rest % high) * ROWS, rest / high * COLUMNS};
}

/* By one thread. */
DEVICE void load_b(u32 to, const tensor_map *map, u32 barrier, int column, int k)
{
#if TRANSPOSED
    tma_load(to, map, barrier, k, column, 0, 0, 0);
#else
#pragma unroll
    for (int p = 0; p < COLUMNS / 64; p++) tma_load(to + 64 * p * PITCH, map, barrier, column + 64 * p, k, 0, 0, 0);
#endif
}
DEVICE void produce(u32 base, const tensor_map *a_map, const tensor_map *b_map, const shape &s)
{
    ring r = {0, 0};
#pragma unroll 1
    for (int n = (int)blockIdx.x; n < tiles_of(s); n += (int)gridDim.x) {
        place p = place_of(n, s);
#pragma unroll 1
        for (int k = 0; k < s.K; k += DEPTH, advance(r)) {
            u32 to = base + r.stage * STAGE_BYTES, full = barrier_of(base + FULL, r);
            mbarrier_wait(barrier_of(base + EMPTY, r), r.parity ^ 1);
            mbarrier_expect(full, STAGE_BYTES);
            tma_load(to, a_map, full, k, p.row, 0, 0, 0);
            load_b(to + A_BYTES, b_map, full, p.column, k);
        }
    }
}

/* The descriptor of what lies `bytes` further: its lower half never carries. */
DEVICE u64 further(u64 descriptor, int bytes)
{
    return (descriptor & ~0xffffffffull) | (u32)((u32)descriptor + bytes / 16);
}
DEVICE void release(u32 base, int stage)
{
    u32 barrier = base + EMPTY + 8 * stage;
    if (threadIdx.x % WARPGROUP == 0) mbarrier_arrive(barrier);
}
/* A consumer starts its products when the other has started all of the tile before: a barrier's parity says nothing
 * to who is a whole phase ahead. */
DEVICE void await_turn(int w)
{
    named_barrier_sync(1 + w, CONSUMERS * WARPGROUP);
}
DEVICE void pass_turn(int w)
{
    named_barrier_arrive(2 - w, CONSUMERS * WARPGROUP);
}
/* One product is always under way while the next is started. */
DEVICE void multiply(float (&sum)[TILES][COLUMNS / 2], u32 base, ring &r, int w, int steps, bool pass)
{
    int before = 0;
#pragma unroll 1
    for (int k = 0; k < steps; k++) {
        u32 at = base + r.stage * STAGE_BYTES;
        u64 a = wgmma_descriptor(at, 16, 8 * PITCH);
        u64 b = wgmma_descriptor(at + A_BYTES, TRANSPOSED ? 16 : 64 * PITCH, 8 * PITCH);
        mbarrier_wait(barrier_of(base + FULL, r), r.parity);
        wgmma_fence();
#pragma unroll
        for (int j = 0; j < DEPTH / 16; j++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
                wgmma_ss<COLUMNS, 0, !TRANSPOSED>(sum[t], further(a, j * 32 + t * 64 * PITCH), further(b, TRANSPOSED ? j * 32 : j * 16 * PITCH),
                                          k > 0 || j > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (k > 0) release(base, before);
        before = r.stage;
        advance(r);
    }
    if (pass) pass_turn(w);
    wgmma_wait<0>();
#pragma unroll
    for (int t = 0; t < TILES; t++) wgmma_hold(sum[t]);
    release(base, before);
}

DEVICE u32 in_panel(u32 panel, int j)
{
    int lane = threadIdx.x % WARP;
    return panel + panel_chunk(lane % 16, 2 * j + lane / 16);
}
DEVICE void store_panel(const tensor_map *map, u32 panel, int row, int column)
{
    tma_store(map, panel, column, row, 0, 0, 0);
}
#if WHAT & 1
/* A warp's panels. */
struct panels {
    u32 at;
    int count; /* of this warp's chunks so far */
};
/* Until all but N of this warp's groups of stores have read their panels. */
template <int N> DEVICE void stores_read()
{
    if (threadIdx.x % WARP == 0) tma_store_wait_read<N>();
    __syncwarp();
}
DEVICE void store_end(u32 to, int j, const u32 (&x)[4], const u32 (&y)[4])
{
    stmatrix_x4(in_panel(to, j), y);
    if (KEEP) stmatrix_x4(in_panel(to + PANEL_BYTES, j), x);
}
/* Columns 2 l and 2 l + 1 of each chunk, in lane l. Asked for long before they are needed, for an end would wait for memory. */
struct biases {
    floats<2> of[CHUNKS];
};
DEVICE void load_bias(biases &b, const T_BIAS *bias, int column, int N)
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        int at = column + c * CHUNK + 2 * (threadIdx.x % WARP);
        b.of[c][0] = b.of[c][1] = 0;
        if (at < N) b.of[c] = load<2>(bias + at); /* N is even */
    }
}
/* The thread's two columns of the k-th eight of a chunk. */
DEVICE floats<2> bias_at(const floats<2> &of, int k)
{
    floats<2> r;
    int from = 4 * k + threadIdx.x % 4;
    r[0] = __shfl_sync(~0u, of[0], from);
    r[1] = __shfl_sync(~0u, of[1], from);
    return r;
}
/* The chunk `s` of 16 rows from `row` on. */
DEVICE void end_gelu(const float *s, panels &p, const tensor_map *y_map, const tensor_map *x_map, const floats<2> &bias, int row,
                     int column)
{
    constexpr int OUTS = KEEP ? 2 : 1, SLOTS = PANELS / OUTS;
    int lane = threadIdx.x % WARP;
    constexpr bool WAIT = SLOTS > 1; /* until a panel is free, before rather than with all results in registers */
    u32 to = p.at + p.count++ % SLOTS * OUTS * PANEL_BYTES, x[CHUNK / 16][4], y[CHUNK / 16][4];
    if (WAIT) stores_read<SLOTS - 1>();
#pragma unroll
    for (int j = 0; j < CHUNK / 16; j++) {
        floats<2> b[2];
        if (BIAS) b[0] = bias_at(bias, 2 * j), b[1] = bias_at(bias, 2 * j + 1);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float low = s[8 * j + 2 * i], high = s[8 * j + 2 * i + 1];
            if (BIAS) low += b[i / 2][0], high += b[i / 2][1];
            if (KEEP) x[j][i] = pack_bf16(low, high);
            y[j][i] = pack_bf16(brief_gelu<TANH>(low), brief_gelu<TANH>(high));
        }
        if (WAIT) store_end(to, j, x[j], y[j]);
    }
    if (!WAIT) {
        stores_read<0>();
#pragma unroll
        for (int j = 0; j < CHUNK / 16; j++) store_end(to, j, x[j], y[j]);
    }
    fence_async();
    __syncwarp();
    if (lane == 0) {
        store_panel(y_map, to, row, column);
        if (KEEP) store_panel(x_map, to + PANEL_BYTES, row, column);
        tma_store_commit();
    }
}
#endif

#if WHAT & 2
/* x comes chunk after chunk of the block's tiles into a ring of panels that a warp shares with that of the other consumer: each
 * chunk into the place of the RING-th before it, which mostly is the other's. So all of a tile's x is there when its end begins;
 * what is asked for in an end waits behind the loads of several stages. */
struct incoming {
    u32 at;
    int number, left; /* of this tile among the block's; tiles of all from it on */
    place of[3];      /* where the warp's rows of this tile and of the next two begin */
};
/* To tile n, number `number` of this block. */
DEVICE void move_to(incoming &p, int number, int n, const shape &s)
{
    p.number = number;
    p.left = tiles_of(s) - n;
#pragma unroll
    for (int i = 0; i < 3; i++) {
        p.of[i] = place_of(n + i * (int)gridDim.x, s);
        p.of[i].row += threadIdx.x / WARP % 4 * 16;
    }
}
DEVICE u32 panel_of(const incoming &p, int n)
{
    return p.at + (p.number * EACH + n) % RING * PANEL_BYTES;
}
/* Counts the chunks of one consumer alone: that may be a whole phase of a panel ahead of the other. */
struct arrival {
    u32 barrier;
    int parity;
};
DEVICE arrival arrival_of(const incoming &p, u32 base, int n)
{
    int number = p.number + n / EACH, chunk = number / CONSUMERS * EACH + n % EACH;
    int owner = number % CONSUMERS * 4 + threadIdx.x / WARP % 4;
    return {base + CAME + 8 * (owner * RING + chunk % RING), chunk / RING % 2};
}
/* Chunk n from this tile's first on, if there is one. By one lane. */
DEVICE void load_x(const incoming &p, u32 base, const tensor_map *x_map, int n)
{
    place of = p.of[n / EACH];
    int c = n % EACH;
    if (n / EACH * (int)gridDim.x >= p.left) return;
    u32 came = arrival_of(p, base, n).barrier;
    mbarrier_expect(came, PANEL_BYTES);
    tma_load(panel_of(p, n), x_map, came, of.column + c % CHUNKS * CHUNK, of.row + c / CHUNKS * 64, 0, 0, 0);
}
/* Of the block's first tiles; nobody else does. */
DEVICE void first_x(const incoming &p, u32 base, const tensor_map *x_map)
{
    if (threadIdx.x % WARP) return;
#pragma unroll
    for (int n = 0; n < RING; n++) load_x(p, base, x_map, n);
}
/* Chunk n; y goes where x was. */
DEVICE void end_grad(const float *s, const incoming &p, u32 base, const tensor_map *y_map, const tensor_map *x_map, int n)
{
    u32 at = panel_of(p, n);
    arrival came = arrival_of(p, base, n);
    mbarrier_wait(came.barrier, came.parity);
    u32 x[CHUNK / 16][4]; /* all asked for at once, for shared memory is busy with the products */
#pragma unroll
    for (int j = 0; j < CHUNK / 16; j++) ldmatrix_x4(x[j], in_panel(at, j));
#pragma unroll
    for (int j = 0; j < CHUNK / 16; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float low = __uint_as_float(x[j][i] << 16), high = __uint_as_float(x[j][i] & 0xffff0000u);
            x[j][i] = pack_bf16(brief_grad<TANH>(s[8 * j + 2 * i], low), brief_grad<TANH>(s[8 * j + 2 * i + 1], high));
        }
        stmatrix_x4(in_panel(at, j), x[j]);
    }
    fence_async();
    __syncwarp();
    if (threadIdx.x % WARP) return;
    store_panel(y_map, at, p.of[0].row + n / CHUNKS * 64, p.of[0].column + n % CHUNKS * CHUNK);
    tma_store_commit();
    if (n > 0) {
        tma_store_wait_read<1>();
        load_x(p, base, x_map, n - 1 + RING);
    }
    if (n == EACH - 1) {
        tma_store_wait_read<0>();
        load_x(p, base, x_map, n + RING);
    }
}
#endif

template <int GRAD> DEVICE void consume(u32 base, int w, const tensor_map *y_map, const tensor_map *x_map, const T_BIAS *bias, const shape &s)
{
    ring r = {0, 0};
    int warp = threadIdx.x / WARP % 4, steps = over(s.K, DEPTH), all = tiles_of(s), number = 0;
#if WHAT & 1
    panels p = {base + AT_PANELS + (4 * w + warp) * PANELS * PANEL_BYTES, 0};
    biases b;
#endif
#if WHAT & 2
    incoming in = {base + AT_PANELS + warp * RING * PANEL_BYTES, 0, 0};
#endif
    float sum[TILES][COLUMNS / 2];
#pragma unroll 1
    for (int n = (int)blockIdx.x; n < all; n += (int)gridDim.x, number++) {
        if (number % CONSUMERS != w) {
            advance_by(r, steps);
            continue;
        }
        place of = place_of(n, s);
#if WHAT & 1
        if (!GRAD && BIAS) load_bias(b, bias, of.column, s.N);
#endif
#if WHAT & 2
        if (GRAD) move_to(in, number, n, s);
        if (GRAD && number == 0) first_x(in, base, x_map);
#endif
        if (number > 0) await_turn(w);
        multiply(sum, base, r, w, steps, n + (int)gridDim.x < all);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int t = i / CHUNKS, c = i % CHUNKS;
            /* A chunk behind the last column is not left out: panels are counted. */
#if WHAT & 2
            if (GRAD) end_grad(sum[t] + c * CHUNK / 2, in, base, y_map, x_map, i);
#endif
#if WHAT & 1
            if (!GRAD) end_gelu(sum[t] + c * CHUNK / 2, p, y_map, x_map, b.of[c], of.row + 16 * warp + 64 * t, of.column + c * CHUNK);
#endif
        }
    }
    if (threadIdx.x % WARP == 0) tma_store_wait_read<0>();
}

template <int GRAD> DEVICE void prepare(u32 base)
{
    if (GRAD && threadIdx.x < 4 * CONSUMERS * RING) {
        mbarrier_init(base + CAME + 8 * threadIdx.x, 1);
        fence_barrier_init();
    }
    if (threadIdx.x == 0) {
#pragma unroll
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(base + FULL + 8 * s, 1);
            mbarrier_init(base + EMPTY + 8 * s, 1);
        }
        fence_barrier_init();
    }
    __syncwarp();
    __syncthreads();
}

#define MAP const __grid_constant__ tensor_map
template <int GRAD>
DEVICE void roles(const tensor_map *a_map, const tensor_map *b_map, const tensor_map *y_map, const tensor_map *x_map,
                  const T_BIAS *bias, const shape &s)
{
    u32 base = shared_address(shared_memory);
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0);
    prepare<GRAD>(base);
    if (warp < 4) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(base, a_map, b_map, s);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        consume<GRAD>(base, warp / 4 - 1, y_map, x_map, bias, s);
    }
}

#if WHAT & 1
/* Boxes of a_map: DEPTH columns, ROWS rows; of b_map DEPTH columns, COLUMNS rows with TRANSPOSED, else 64 columns, DEPTH rows; of y_map and
 * x_map CHUNK columns, 16 rows. */
KERNEL_MIN(THREADS, 1)
product_gelu(MAP a_map, MAP b_map, MAP y_map, MAP x_map, const T_BIAS *bias, int M, int N, int K, int group)
{
    roles<0>(&a_map, &b_map, &y_map, &x_map, bias, {M, N, K, group});
}
#endif
#if WHAT & 2
KERNEL_MIN(THREADS, 1)
product_gelu_grad(MAP a_map, MAP b_map, MAP y_map, MAP x_map, int M, int N, int K, int group)
{
    roles<1>(&a_map, &b_map, &y_map, &x_map, 0, {M, N, K, group});
}
#endif
