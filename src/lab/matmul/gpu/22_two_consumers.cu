/* 22_two_consumers.cu - two warpgroups multiply, and take registers from the one that loads.
 *
 * A tile of 128 x 256 needs a quarter fewer bytes per FLOP than a tile of 128 x 128. But one
 * warpgroup would need 256 sums per thread, and a thread has at most 255 registers. So two
 * consumers share the tile: each has 64 rows, and both read the same columns of B. While one
 * consumer waits for its wgmma, the wgmma of the other keep the tensor cores busy.
 *
 * All threads of a block start with the same number of registers: 65536 / 384, in steps of 8, are
 * 168. setmaxnreg changes this for whole warpgroups: the producer keeps 24, the consumers get 240.
 *
 * In TF32 an element has 4 bytes, so a row of 128 bytes has 32 elements along k, and a wgmma takes
 * 8 of these elements. wgmma reads TF32 operands along k only, so B is (n,k) here. TMA rounds
 * floats to TF32 while it copies them; wgmma alone would truncate them. */
#include "hopper.cuh"

enum {
    ROWS = 128, COLUMNS = 256, DEPTH = 128 / sizeof(ELEMENT), STAGES = 4,
    PANEL = 64 * 128, /* bytes of 64 rows of 128 bytes */
    A_BYTES = ROWS / 64 * PANEL, B_BYTES = COLUMNS / 64 * PANEL, STAGE = A_BYTES + B_BYTES,
    FULL = STAGES * STAGE, EMPTY = FULL + 8 * STAGES,
    CONSUMERS = 2, WARPGROUP = 128,
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

DEVICE void produce(u32 shared, const tensor_map *a_map, const tensor_map *b_map, int row,
                    int column, int steps)
{
    place p = {0, 0};
#pragma unroll 1
    for (int step = 0; step < steps; step++, advance(p)) {
        mbarrier_wait(shared + EMPTY + 8 * p.stage, p.odd ^ 1);
        load_stage(shared + p.stage * STAGE, shared + FULL + 8 * p.stage, a_map, b_map, row, column,
                   step * DEPTH);
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

DEVICE void multiply(float (&sum)[COLUMNS / 2], u32 shared, int consumer, int steps)
{
    place p = {0, 0};
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
    int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS, steps = ceil_div((int)k, DEPTH);
    int warpgroup = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    init_barriers(shared);
    if (warpgroup == 0) {
        registers_dec<24>();
        if (threadIdx.x == 0) produce(shared, &a_map, &b_map, row, column, steps);
    } else {
        registers_inc<240>();
        float sum[COLUMNS / 2];
        multiply(sum, shared, warpgroup - 1, steps);
        store_sums(c, sum, row + (warpgroup - 1) * 64, column, (int)m, (int)n);
    }
}
