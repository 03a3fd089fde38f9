/* 24_stores.cu - TMA stores C from shared memory, while the next tile is computed.
 *
 * If a warp stores its sums itself, each instruction writes pieces of 16 bytes to 8 rows of C, and
 * nothing is multiplied until all stores are issued. Here a warp writes its sums to a panel in
 * shared memory, 16 rows of 128 bytes, and one lane starts a TMA copy of the panel to C. stmatrix
 * writes four matrices of 8 x 8 at once, whose layout is that of the sums; the chunks of a row are
 * permuted as TMA expects, so there are no bank conflicts. Each warp has its own panels, so no warp
 * waits for another.
 *
 * Two synchronizations are needed. Before a lane starts the copy, the writes of all lanes must be
 * visible to TMA: each lane calls fence_async, then __syncwarp. Before a panel is written again,
 * TMA must have read it: the lane that started the copy waits for this, then all lanes call
 * __syncwarp. */
#include "hopper.cuh"

enum {
    CONSUMERS = 2, WARPGROUP = 128,
    ROWS = 128, COLUMNS = 256, DEPTH = 128 / sizeof(ELEMENT), STAGES = 3,
    PANEL = 64 * 128, /* bytes of 64 rows of 128 bytes */
    A_BYTES = ROWS / 64 * PANEL, B_BYTES = COLUMNS / 64 * PANEL, STAGE = A_BYTES + B_BYTES,
    EACH = DEPTH, PANELS = 4, PANEL_BYTES = 16 * 128, /* columns of a panel of C */
    FULL = STAGES * STAGE + 4 * CONSUMERS * PANELS * PANEL_BYTES, EMPTY = FULL + 8 * STAGES,
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

/* Writes part `i` of a warp's sums, 128 bytes of each of its 16 rows, to a panel. */
DEVICE void fill_panel(u8 *panel, const float (&sum)[COLUMNS / 2], int i)
{
    const float *part = sum + i * EACH / 2;
    int lane = threadIdx.x % WARP;
#if TF32
    UNROLL for (int j = 0; j < EACH / 2; j += 2) { /* two floats of row g, or of g + 8 */
        int row = lane / 4 + j / 2 % 2 * 8, chunk = j / 4 * 2 + lane % 4 / 2;
        *(float2 *)(panel + panel_chunk(row, chunk) + lane % 2 * 8) =
            make_float2(part[j], part[j + 1]);
    }
#else
    UNROLL for (int j = 0; j < EACH / 16; j++) {
        u32 four[4];
        UNROLL for (int r = 0; r < 4; r++)
            four[r] = pack_bf16(part[8 * j + 2 * r], part[8 * j + 2 * r + 1]);
        stmatrix_x4(shared_address(panel) + panel_chunk(lane % 16, 2 * j + lane / 16), four);
    }
#endif
}

/* Stores a warp's 16 rows of C, as many columns at a time as the panels hold. */
DEVICE void store_sums(const tensor_map *c_map, u8 *panels, const float (&sum)[COLUMNS / 2],
                       int row, int column)
{
    const int lane = threadIdx.x % WARP;
    UNROLL for (int first = 0; first < COLUMNS / EACH; first += PANELS) {
        if (lane == 0) tma_store_wait_read<0>(); /* TMA has read the panels */
        __syncwarp();
        UNROLL for (int i = 0; i < PANELS; i++)
            fill_panel(panels + i * PANEL_BYTES, sum, first + i);
        fence_async();
        __syncwarp();
        if (lane == 0) {
            UNROLL for (int i = 0; i < PANELS; i++)
                tma_store(c_map, shared_address(panels) + i * PANEL_BYTES,
                          column + (first + i) * EACH, row, 0, 0, 0);
            tma_store_commit();
        }
        __syncwarp(); /* wgmma needs all lanes to be converged */
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
       const __grid_constant__ tensor_map c_map, ELEMENT *, const ELEMENT *, const ELEMENT *, i64 m,
       i64 n, i64 k)
{
    extern __shared__ __align__(1024) u8 memory[];
    u32 shared = shared_address(memory);
    const tiles t = tiles_of(m, n, k);
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0), consumer = warp / 4 - 1;
    init_barriers(shared);
    if (consumer < 0) {
        registers_dec<24>();
        if (threadIdx.x == 0) produce(shared, &a_map, &b_map, t);
    } else {
        registers_inc<240>();
        u8 *panels = memory + STAGES * STAGE + (warp - 4) * PANELS * PANEL_BYTES;
        place p = {0, 0};
#pragma unroll 1
        for (int i = blockIdx.x; i < t.down * t.across; i += gridDim.x) {
            float sum[COLUMNS / 2];
            position at = position_of(t, i);
            multiply(sum, shared, p, consumer, t.steps);
            store_sums(&c_map, panels, sum, at.row + (warp - 4) * 16, at.column);
        }
        if (threadIdx.x % WARP == 0) tma_store_wait_read<0>(); /* before shared memory is freed */
    }
}
