/* 21_producer.cu - one warp loads, a warpgroup multiplies, and a ring of stages is between them.
 *
 * The loads run ahead of the wgmma. Shared memory holds five stages here, each with the tiles of A
 * and B for 64 values of k. The producer, a single thread, fills one stage after the other, and the
 * consumer, a warpgroup, multiplies the stages in the same order. Each stage has two barriers: a
 * phase of `full` ends when all bytes have arrived, a phase of `empty` when the consumer has read
 * these bytes. A thread that waits needs to know only the parity of the phase, since neither side
 * can be more than one round of the ring ahead of the other.
 *
 * Now the tensor cores are idle only while the warpgroup waits for one group of wgmma and issues
 * the next. One thread of the 128 signals that a stage is empty: each arrival on a barrier is an
 * atomic operation on shared memory, and 128 arrivals for each stage would cost up to a tenth of
 * the speed. */
#include "hopper.cuh"

enum {
    ROWS = 128, COLUMNS = 128, DEPTH = 64, STAGES = 5,
    PANEL = 64 * 128, /* bytes of 64 rows of 64 elements */
    A_BYTES = ROWS / 64 * PANEL, B_BYTES = COLUMNS / 64 * PANEL, STAGE = A_BYTES + B_BYTES,
    FULL = STAGES * STAGE, EMPTY = FULL + 8 * STAGES, /* the barriers follow the stages */
};

/* A position in the ring: the stage, and whether the number of the round is odd. */
struct place {
    int stage, odd;
};
DEVICE void advance(place &p)
{
    if (++p.stage == STAGES) p.stage = 0, p.odd ^= 1;
}

DEVICE void produce(u32 shared, const tensor_map *a_map, const tensor_map *b_map, int row,
                    int column, int steps)
{
    place p = {0, 0};
#pragma unroll 1
    for (int k = 0; k < steps * DEPTH; k += DEPTH, advance(p)) {
        u32 a = shared + p.stage * STAGE, b = a + A_BYTES, full = shared + FULL + 8 * p.stage;
        mbarrier_wait(shared + EMPTY + 8 * p.stage, p.odd ^ 1); /* no wait in the first round */
        mbarrier_expect(full, STAGE);
        tma_load(a, a_map, full, k, row, 0, 0, 0);
        UNROLL for (int i = 0; i < COLUMNS / 64; i++)
            tma_load(b + i * PANEL, b_map, full, column + 64 * i, k, 0, 0, 0);
    }
}

DEVICE void multiply(float (&sum)[ROWS / 64][COLUMNS / 2], u32 shared, int steps)
{
    place p = {0, 0};
#pragma unroll 1
    for (int step = 0; step < steps; step++, advance(p)) {
        u32 a = shared + p.stage * STAGE, b = a + A_BYTES;
        u64 rows = wgmma_descriptor(a, 16, 1024), columns = wgmma_descriptor(b, PANEL, 1024);
        mbarrier_wait(shared + FULL + 8 * p.stage, p.odd);
        wgmma_fence();
        UNROLL for (int j = 0; j < DEPTH / 16; j++)
            UNROLL for (int t = 0; t < ROWS / 64; t++)
                wgmma_ss<COLUMNS, false, true>(sum[t], rows + t * PANEL / 16 + 2 * j,
                                               columns + 128 * j, step > 0 || j > 0);
        wgmma_commit();
        wgmma_wait<0>();
        if (threadIdx.x == 0) mbarrier_arrive(shared + EMPTY + 8 * p.stage);
    }
    UNROLL for (int t = 0; t < ROWS / 64; t++) wgmma_hold(sum[t]);
}

KERNEL_MIN(160, 1)
matmul(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
       ELEMENT *c, const ELEMENT *, const ELEMENT *, i64 m, i64 n, i64 k)
{
    extern __shared__ __align__(1024) u8 memory[];
    u32 shared = shared_address(memory);
    int row = blockIdx.y * ROWS, column = blockIdx.x * COLUMNS, steps = ceil_div((int)k, DEPTH);
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0), lane = threadIdx.x % WARP;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(shared + FULL + 8 * s, 1);
            mbarrier_init(shared + EMPTY + 8 * s, 1);
        }
        fence_barrier_init();
    }
    __syncthreads();
    if (warp == 4) {
        if (lane == 0) produce(shared, &a_map, &b_map, row, column, steps);
        return;
    }
    float sum[ROWS / 64][COLUMNS / 2];
    multiply(sum, shared, steps);
    row += warp * 16 + lane / 4;
    column += lane % 4 * 2;
    UNROLL for (int t = 0; t < ROWS / 64; t++)
        UNROLL for (int i = 0; i < COLUMNS / 2; i += 2) {
            int down = row + t * 64 + i / 2 % 2 * 8, right = column + i / 4 * 8;
            floats<2> two = {{sum[t][i], sum[t][i + 1]}};
            if (down < (int)m && right < (int)n) store<2>(c + down * n + right, two);
        }
}
