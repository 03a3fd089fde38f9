/* 26_turns.cu - a tile for each consumer: one multiplies while the other stores.
 *
 * Consumers that share a tile end it together, and nothing is multiplied until both have rounded
 * their sums and written them to shared memory: the shorter k, the larger a part of the time that
 * is. Here each consumer computes a whole tile of 128 x 192, with 192 sums in each thread, and they
 * take turns. The one that multiplies has the tensor cores for itself, so it issues the next group
 * of wgmma before it waits for the last.
 *
 * A consumer skips the stages of the other's tile. It must not wait for a stage too early, as the
 * parity of a barrier does not tell a phase from the one two rounds before. So it first waits for
 * its turn, which the other gives when it has issued its last wgmma.
 *
 * The tile also suits other sizes. For 3000 x 5000, 648 tiles of 128 x 192 are 4.9 of 5 rounds of
 * 132 multiprocessors, and 480 of 128 x 256 are 3.6 of 4. For 4096 x 4096 it is 5.3 of 6, and 3.9
 * of 4. */
#include "hopper.cuh"

enum {
    CONSUMERS = 2, WARPGROUP = 128,
    ROWS = 128, COLUMNS = 192, DEPTH = 64, STAGES = 4,
    PANEL = 64 * 128, /* bytes of 64 rows of 128 bytes */
    A_BYTES = ROWS / 64 * PANEL, B_BYTES = COLUMNS / 64 * PANEL, STAGE = A_BYTES + B_BYTES,
    EACH = DEPTH, PANELS = 3, PANEL_BYTES = 16 * 128, /* columns of a panel of C */
    FULL = STAGES * STAGE + 4 * CONSUMERS * PANELS * PANEL_BYTES, EMPTY = FULL + 8 * STAGES,
    GROUP = 8, /* rows of tiles */
};

/* --- the copy --- */
/* A row that begins at multiples of 32 bytes stays; a copied one begins at multiples of 128. */
DEVICE int copied_rows(i64 rows, i64 columns)
{
    return columns * sizeof(ELEMENT) % 32 ? (int)rows : 0;
}
template <typename WORD> DEVICE void copy_row(WORD *to, const WORD *from, int n)
{
    enum { THREADS = 128, TIMES = 8 };
    for (int i = threadIdx.x; i < n; i += TIMES * THREADS) {
        WORD w[TIMES];
        UNROLL for (int j = 0; j < TIMES; j++)
            if (i + j * THREADS < n) w[j] = from[i + j * THREADS];
        UNROLL for (int j = 0; j < TIMES; j++)
            if (i + j * THREADS < n) to[i + j * THREADS] = w[j];
    }
}

/* A block copies a row: of A, or, after those, of B. */
KERNEL(128)
matmul_pad(ELEMENT *, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k, ELEMENT *scratch)
{
    int row = blockIdx.x, above = copied_rows(m, k), columns = (int)k;
    const ELEMENT *from = a;
    if (row >= above) {
        scratch += above * (i64)round_up(columns, DEPTH);
        from = b;
        row -= above;
        columns = (int)n;
    }
    scratch += row * (i64)round_up(columns, DEPTH);
    from += row * (i64)columns;
    if (columns % (16 / sizeof(ELEMENT)))
        copy_row(scratch, from, columns);
    else
        copy_row((uint4 *)scratch, (const uint4 *)from, columns * (int)sizeof(ELEMENT) / 16);
}

/* --- the product --- */
struct place {
    int stage, odd;
};
DEVICE void advance(place &p)
{
    if (++p.stage == STAGES) p.stage = 0, p.odd ^= 1;
}
DEVICE void skip(place &p, int steps)
{
    steps += p.stage;
    p.stage = steps % STAGES;
    p.odd ^= steps / STAGES & 1;
}

DEVICE void load_stage(u32 a, u32 full, const tensor_map *a_map, const tensor_map *b_map, int row,
                       int column, int k)
{
    u32 b = a + A_BYTES;
    mbarrier_expect(full, STAGE);
    tma_load(a, a_map, full, k, row, 0, 0, 0);
    UNROLL for (int i = 0; i < COLUMNS / 64; i++)
        tma_load(b + i * PANEL, b_map, full, column + 64 * i, k, 0, 0, 0);
}

/* The tiles of C, and the position of the first element of tile i. */
struct tiles {
    int down, across, steps;
};
struct position {
    int row, column;
};
DEVICE tiles tiles_of(i64 m, i64 n, i64 k)
{
    return {ceil_div((int)m, ROWS), ceil_div((int)n, COLUMNS), ceil_div((int)k, DEPTH)};
}
DEVICE position position_of(const tiles &t, int i)
{
    int group = i / (GROUP * t.across), rest = i % (GROUP * t.across);
    int high = min(t.down - group * GROUP, GROUP);
    return {(group * GROUP + rest % high) * ROWS, rest / high * COLUMNS};
}

DEVICE void produce(u32 shared, const tensor_map *a_map, const tensor_map *b_map, const tiles &t)
{
    place p = {0, 0};
#pragma unroll 1
    for (int i = blockIdx.x; i < t.down * t.across; i += gridDim.x) {
        position at = position_of(t, i);
#pragma unroll 1
        for (int step = 0; step < t.steps; step++, advance(p)) {
            mbarrier_wait(shared + EMPTY + 8 * p.stage, p.odd ^ 1);
            load_stage(shared + p.stage * STAGE, shared + FULL + 8 * p.stage, a_map, b_map, at.row,
                       at.column, step * DEPTH);
        }
    }
}

DEVICE void release(u32 shared, int stage)
{
    if (threadIdx.x % WARPGROUP == 0) mbarrier_arrive(shared + EMPTY + 8 * stage);
}
DEVICE void multiply(float (&sum)[2][COLUMNS / 2], u32 shared, place &p, int consumer, int steps,
                     bool pass)
{
    int before = 0;
#pragma unroll 1
    for (int step = 0; step < steps; step++, advance(p)) {
        u32 a = shared + p.stage * STAGE, b = a + A_BYTES;
        u64 rows = wgmma_descriptor(a, 16, 1024), columns = wgmma_descriptor(b, PANEL, 1024);
        mbarrier_wait(shared + FULL + 8 * p.stage, p.odd);
        wgmma_fence();
        UNROLL for (int j = 0; j < DEPTH / 16; j++)
            UNROLL for (int t = 0; t < 2; t++)
                wgmma_ss<COLUMNS, false, true>(sum[t], rows + t * PANEL / 16 + 2 * j,
                                               columns + 128 * j, step > 0 || j > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (step > 0) release(shared, before);
        before = p.stage;
    }
    if (pass) named_barrier_arrive(2 - consumer, CONSUMERS * WARPGROUP);
    wgmma_wait<0>();
    UNROLL for (int t = 0; t < 2; t++) wgmma_hold(sum[t]);
    release(shared, before);
}

/* Writes 128 bytes of each of a warp's 16 rows, from part `i` of its sums, to a panel. */
DEVICE void fill_panel(u8 *panel, const float (&sum)[COLUMNS / 2], int i)
{
    const float *part = sum + i * EACH / 2;
    int lane = threadIdx.x % WARP;
    UNROLL for (int j = 0; j < EACH / 16; j++) {
        u32 four[4];
        UNROLL for (int r = 0; r < 4; r++)
            four[r] = pack_bf16(part[8 * j + 2 * r], part[8 * j + 2 * r + 1]);
        stmatrix_x4(shared_address(panel) + panel_chunk(lane % 16, 2 * j + lane / 16), four);
    }
}

/* Stores a warp's 16 rows, as many columns at a time as it has panels for. */
DEVICE void store_sums(const tensor_map *c_map, u8 *panels, const float (&sum)[COLUMNS / 2],
                       int row, int column)
{
    const int lane = threadIdx.x % WARP;
    UNROLL for (int first = 0; first < COLUMNS / EACH; first += PANELS) {
        if (lane == 0) tma_store_wait_read<0>(); /* the panels were read */
        __syncwarp();
        UNROLL for (int i = 0; i < PANELS; i++)
            fill_panel(panels + i * PANEL_BYTES, sum, first + i);
        fence_async();
        __syncwarp();
        if (lane > 0) continue;
        UNROLL for (int i = 0; i < PANELS; i++)
            tma_store(c_map, shared_address(panels) + i * PANEL_BYTES, column + (first + i) * EACH,
                      row, 0, 0, 0);
        tma_store_commit();
    }
}

/* The same for a C whose rows TMA cannot store. */
DEVICE void store_singly(ELEMENT *c, const float (&sum)[COLUMNS / 2], int row, int column, int m,
                         int n)
{
    row += threadIdx.x % WARP / 4;
    column += threadIdx.x % 4 * 2;
    UNROLL for (int i = 0; i < COLUMNS / 2; i++) {
        int down = row + i / 2 % 2 * 8, right = column + i / 4 * 8 + i % 2;
        if (down < m && right < n) c[(i64)down * n + right] = to<ELEMENT>(sum[i]);
    }
}

DEVICE void init_barriers(u32 shared)
{
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(shared + FULL + 8 * s, 1);
            mbarrier_init(shared + EMPTY + 8 * s, 1); /* one consumer reads a stage */
        }
        fence_barrier_init();
    }
    __syncthreads();
}

KERNEL_MIN(WARPGROUP * (1 + CONSUMERS), 1)
matmul(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
       const __grid_constant__ tensor_map c_map, ELEMENT *c, const ELEMENT *, const ELEMENT *,
       i64 m, i64 n, i64 k, ELEMENT *)
{
    extern __shared__ __align__(1024) u8 memory[];
    u32 shared = shared_address(memory);
    const tiles t = tiles_of(m, n, k);
    const int all = t.down * t.across;
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0), consumer = warp / 4 - 1;
    init_barriers(shared);
    if (consumer < 0) {
        registers_dec<24>();
        if (threadIdx.x == 0) produce(shared, &a_map, &b_map, t);
    } else {
        registers_inc<240>();
        u8 *panels = memory + STAGES * STAGE + (warp - 4) * PANELS * PANEL_BYTES;
        place p = {0, 0};
        if (consumer == 1) skip(p, t.steps);
#pragma unroll 1
        for (int i = blockIdx.x + consumer * gridDim.x; i < all; i += CONSUMERS * gridDim.x) {
            float sum[2][COLUMNS / 2];
            position at = position_of(t, i);
            if (i >= gridDim.x) named_barrier_sync(1 + consumer, CONSUMERS * WARPGROUP);
            multiply(sum, shared, p, consumer, t.steps, i + (int)gridDim.x < all);
            skip(p, t.steps);
            UNROLL for (int half = 0; half < 2; half++) {
                int row = at.row + half * 64 + warp % 4 * 16;
                if (n * sizeof(ELEMENT) % 16)
                    store_singly(c, sum[half], row, at.column, (int)m, (int)n);
                else
                    store_sums(&c_map, panels, sum[half], row, at.column);
            }
        }
        if (threadIdx.x % WARP == 0) tma_store_wait_read<0>(); /* memory ends with the block */
    }
}
