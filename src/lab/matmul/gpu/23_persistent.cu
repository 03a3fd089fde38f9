/* 23_persistent.cu - as many blocks as multiprocessors; each computes one tile after the other.
 *
 * When a block ends, the next one on its multiprocessor begins with empty stages and waits for
 * memory. A block that stays can load the next tile while it stores the sums of the current tile.
 *
 * A block also chooses the order of its tiles. At any time an H100 computes 132 tiles. If they are
 * one row of tiles, they need the A of 1 row of tiles and the B of 132 columns of tiles. If they
 * are 16 rows of 8 tiles, they need the A of 16 rows and the B of 8 columns, which are far fewer
 * bytes to load into L2. So tiles are numbered down through GROUP rows of tiles, then to the right.
 * The last group has fewer rows if the number of rows is not a multiple of GROUP. */
#include "hopper.cuh"

enum {
    ROWS = 128, COLUMNS = 256, DEPTH = 128 / sizeof(ELEMENT), STAGES = 4,
    PANEL = 64 * 128, /* bytes of 64 rows of 128 bytes */
    A_BYTES = ROWS / 64 * PANEL, B_BYTES = COLUMNS / 64 * PANEL, STAGE = A_BYTES + B_BYTES,
    FULL = STAGES * STAGE, EMPTY = FULL + 8 * STAGES,
    CONSUMERS = 2, WARPGROUP = 128,
    GROUP = 16, /* rows of tiles */
};

struct place {
    int stage, odd;
};
DEVICE void advance(place &p)
{
    if (++p.stage == STAGES) p.stage = 0, p.odd ^= 1;
}

DEVICE void load_stage(u32 a, u32 full, const tensor_map *a_map, const tensor_map *b_map, int row,
                       int column, int k)
{
    u32 b = a + A_BYTES;
    mbarrier_expect(full, STAGE);
    tma_load(a, a_map, full, k, row, 0, 0, 0);
#if TF32
    tma_load(b, b_map, full, k, column, 0, 0, 0);
#else
    UNROLL for (int i = 0; i < COLUMNS / 64; i++)
        tma_load(b + i * PANEL, b_map, full, column + 64 * i, k, 0, 0, 0);
#endif
}

/* C has `down` x `across` tiles, and k has `steps` steps. A position is that of a tile in C. */
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

/* Multiplies 64 rows of A, at `a`, by all columns of B, at `b`. The next step of k is 32 bytes
 * further in a row or, in B (k,n), 16 rows further. A descriptor counts in units of 16 bytes. */
DEVICE void multiply_stage(float (&sum)[COLUMNS / 2], u32 a, u32 b, bool first)
{
    u64 rows = wgmma_descriptor(a, 16, 1024);
#if TF32
    u64 columns = wgmma_descriptor(b, 16, 1024);
    UNROLL for (int j = 0; j < 4; j++)
        wgmma_ss_tf32<COLUMNS>(sum, rows + 2 * j, columns + 2 * j, !first || j > 0);
#else
    u64 columns = wgmma_descriptor(b, PANEL, 1024);
    UNROLL for (int j = 0; j < 4; j++)
        wgmma_ss<COLUMNS, false, true>(sum, rows + 2 * j, columns + 128 * j, !first || j > 0);
#endif
}

DEVICE void multiply(float (&sum)[COLUMNS / 2], u32 shared, place &p, int consumer, int steps)
{
#pragma unroll 1
    for (int step = 0; step < steps; step++, advance(p)) {
        u32 a = shared + p.stage * STAGE;
        mbarrier_wait(shared + FULL + 8 * p.stage, p.odd);
        wgmma_fence();
        multiply_stage(sum, a + consumer * PANEL, a + A_BYTES, step == 0);
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x % WARPGROUP == 0) mbarrier_arrive(shared + EMPTY + 8 * p.stage);
    }
    wgmma_hold(sum);
}

/* In every 8 columns, a thread has two adjacent elements of each of two rows, 8 apart. */
DEVICE void store_sums(ELEMENT *c, const float (&sum)[COLUMNS / 2], int row, int column, int m,
                       int n)
{
    row += threadIdx.x / WARP % 4 * 16 + threadIdx.x % WARP / 4;
    column += threadIdx.x % 4 * 2;
    UNROLL for (int i = 0; i < COLUMNS / 2; i += 2) {
        int down = row + i / 2 % 2 * 8, right = column + i / 4 * 8;
        floats<2> two = {{sum[i], sum[i + 1]}};
        if (down < m && right < n) store<2>(c + (i64)down * n + right, two);
    }
}

DEVICE void init_barriers(u32 shared)
{
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(shared + FULL + 8 * s, 1);
            mbarrier_init(shared + EMPTY + 8 * s, CONSUMERS);
        }
        fence_barrier_init();
    }
    __syncthreads();
}

KERNEL_MIN(WARPGROUP * (1 + CONSUMERS), 1)
matmul(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
       ELEMENT *c, const ELEMENT *, const ELEMENT *, i64 m, i64 n, i64 k)
{
    extern __shared__ __align__(1024) u8 memory[];
    u32 shared = shared_address(memory);
    const tiles t = tiles_of(m, n, k);
    int warpgroup = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    init_barriers(shared);
    if (warpgroup == 0) {
        registers_dec<24>();
        if (threadIdx.x == 0) produce(shared, &a_map, &b_map, t);
    } else {
        registers_inc<240>();
        place p = {0, 0};
#pragma unroll 1
        for (int i = blockIdx.x; i < t.down * t.across; i += gridDim.x) {
            float sum[COLUMNS / 2];
            position at = position_of(t, i);
            multiply(sum, shared, p, warpgroup - 1, t.steps);
            store_sums(c, sum, at.row + (warpgroup - 1) * 64, at.column, (int)m, (int)n);
        }
    }
}
