/* matmul_hopper.cu - matmuls with GELU or its gradient as epilogue, by WGMMA; bf16, float sums:
 *
 *     matmul_gelu        y = gelu(x) and, with KEEP, x = a b + bias (M,N)
 *     matmul_gelu_grad   y = (a b) gelu'(x)
 *
 * a is (M,K), b is (K,N) or, with TRANSPOSED, (N,K). A persistent block processes tile after tile;
 * neighboring blocks share operands in L2. One producer thread loads the operands by TMA into
 * STAGES stages; a stage holds both operands for DEPTH values of the dimension K. Each of two
 * consumer warpgroups has every second tile (CUTLASS's ping-pong): the epilogue of one overlaps the
 * matmul of the other.
 *
 * The tensor cores need ROWS * COLUMNS / 32 clocks per stage, for which ROWS + COLUMNS rows of 128
 * bytes come from L2. The kernel is bound by these loads, 49 bytes a clock for 128 x 192. The
 * epilogue (matmul_hopper_epilogue.cuh) is 8 to 15 instructions per element.
 *
 *     TILES     64-row units of a tile: ROWS / 64
 *     COLUMNS   columns of a tile: 64, 128, 192 or 256
 *     PANELS    shared-memory panels of a warp, for x loaded and y stored
 *     WHAT      1: matmul_gelu, 2: matmul_gelu_grad
 *     TRANSPOSED, TANH, KEEP, BIAS (with T_BIAS)
 *
 * Loads beyond the bounds of a tensor give zeros; stores there are dropped. */
#include "gelu.cuh"
#include "hopper.cuh"

#if !defined TILES || !defined COLUMNS || !defined STAGES || !defined PANELS || \
    !defined TRANSPOSED || !defined TANH || !defined WHAT
#error "the host defines all of these"
#endif
#define A_TRANSPOSED 0
#define B_TRANSPOSED TRANSPOSED
#define ALTERNATE    1
#ifndef KEEP
#define KEEP 0
#endif
#ifndef BIAS
#define BIAS 0
#define T_BIAS float
#endif

enum {
    WARPGROUP = 128, CONSUMERS = 2, THREADS = WARPGROUP * (CONSUMERS + 1),
    DEPTH = 64, /* K of a stage: 128 bytes per panel row */
    PITCH = 2 * DEPTH, BLOCK = 64 * PITCH, /* 64 panel rows */
    ROWS = 64 * TILES, A_BYTES = ROWS * PITCH, B_BYTES = COLUMNS * PITCH,
    STAGE_BYTES = A_BYTES + B_BYTES,
    CHUNK = 64, /* columns of one epilogue step of a warp */
    CHUNKS = COLUMNS / CHUNK, PANEL_BYTES = 16 * 2 * CHUNK, AT_PANELS = STAGES * STAGE_BYTES,
    AT_BARRIERS = AT_PANELS + 4 * CONSUMERS * PANELS * PANEL_BYTES,
    FULL = AT_BARRIERS, /* per stage */
    EMPTY = FULL + 8 * STAGES,
    ARRIVED = EMPTY + 8 * STAGES, /* per panel */
    EACH = TILES * CHUNKS, /* chunks per tile and warp */
    CONSUMER_REGISTERS = 240, PRODUCER_REGISTERS = 24,
};
static_assert(COLUMNS % 64 == 0 && TILES * COLUMNS <= 384, "");

extern __shared__ __align__(1024) u8 shared_memory[];

#include "matmul_hopper.cuh"

DEVICE void produce(u32 base, const tensor_map *a_map, const tensor_map *b_map, const shape &s)
{
    ring r = {0, 0};
#pragma unroll 1
    for (int n = (int)blockIdx.x; n < tiles_of(s); n += (int)gridDim.x) {
        position p = position_of(n, s);
#pragma unroll 1
        for (int k = 0; k < s.K; k += DEPTH, advance(r)) {
            u32 to = base + r.stage * STAGE_BYTES, full = barrier_of(base + FULL, r);
            mbarrier_wait(barrier_of(base + EMPTY, r), r.parity ^ 1);
            load_stage(to, full, a_map, b_map, p, k);
        }
    }
}

#include "matmul_hopper_epilogue.cuh"

template <int GRAD>
DEVICE void consume(u32 base, int w, const tensor_map *y_map, const tensor_map *x_map,
                    const T_BIAS *bias, const shape &s)
{
    ring r = {0, 0};
    int warp = threadIdx.x / WARP % 4, steps = ceil_div(s.K, DEPTH), all = tiles_of(s), number = 0;
    int at = 4 * w + warp;
    panels p = {base + AT_PANELS + at * PANELS * PANEL_BYTES, base + ARRIVED + 8 * PANELS * at, 0};
    float sum[TILES][COLUMNS / 2];
#if WHAT & 1
    biases b;
#endif
#pragma unroll 1
    for (int n = (int)blockIdx.x; n < all; n += (int)gridDim.x, number++) {
        if (number % CONSUMERS != w) {
            advance_by(r, steps);
            continue;
        }
        position of = position_of(n, s);
        of.row += 16 * warp;
#if WHAT & 2
        if (GRAD) load_first_x(p, x_map, of);
#endif
#if WHAT & 1
        if (!GRAD && BIAS) load_bias(b, bias, of.column, s.N);
#endif
        if (number > 0) await_turn(w);
        multiply(sum, base, r, w, steps, n + (int)gridDim.x < all);
        UNROLL for (int i = 0; i < EACH; i++) {
            const float *part = sum[i / CHUNKS] + i % CHUNKS * CHUNK / 2;
            /* Chunks beyond the last column are not skipped, because p.count selects the panels. */
#if WHAT & 2
            if (GRAD) epilogue_grad(part, p, y_map, x_map, i, of);
#endif
#if WHAT & 1
            if (!GRAD) epilogue_gelu(part, p, y_map, x_map, b, i, of);
#endif
        }
        p.count += EACH;
    }
    if (threadIdx.x % WARP == 0) tma_store_wait_read<0>();
}

DEVICE void prepare(u32 base)
{
    if (threadIdx.x == 0) {
        UNROLL for (int s = 0; s < STAGES; s++) {
            mbarrier_init(base + FULL + 8 * s, 1);
            mbarrier_init(base + EMPTY + 8 * s, 1);
        }
        UNROLL for (int i = 0; i < 4 * CONSUMERS * PANELS; i++)
            mbarrier_init(base + ARRIVED + 8 * i, 1);
        fence_barrier_init();
    }
    __syncwarp();
    __syncthreads();
}

template <int GRAD>
DEVICE void roles(const tensor_map *a_map, const tensor_map *b_map, const tensor_map *y_map,
                  const tensor_map *x_map, const T_BIAS *bias, const shape &s)
{
    u32 base = shared_address(shared_memory);
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0);
    prepare(base);
    if (warp < 4) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(base, a_map, b_map, s);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
        consume<GRAD>(base, warp / 4 - 1, y_map, x_map, bias, s);
    }
}

#if WHAT & 1
/* Boxes of a_map: DEPTH columns, ROWS rows; of b_map DEPTH columns, COLUMNS rows with TRANSPOSED,
 * else 64 columns, DEPTH rows; of y_map and x_map CHUNK columns, 16 rows. */
KERNEL_MIN(THREADS, 1)
matmul_gelu(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
             const __grid_constant__ tensor_map y_map, const __grid_constant__ tensor_map x_map,
             const T_BIAS *bias, int M, int N, int K, int group)
{
    roles<0>(&a_map, &b_map, &y_map, &x_map, bias, {M, N, K, group});
}
#endif
#if WHAT & 2
KERNEL_MIN(THREADS, 1)
matmul_gelu_grad(const __grid_constant__ tensor_map a_map,
                  const __grid_constant__ tensor_map b_map,
                  const __grid_constant__ tensor_map y_map,
                  const __grid_constant__ tensor_map x_map, int M, int N, int K, int group)
{
    roles<1>(&a_map, &b_map, &y_map, &x_map, 0, {M, N, K, group});
}
#endif
