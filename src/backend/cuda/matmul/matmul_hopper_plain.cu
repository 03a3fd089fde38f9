/* matmul_hopper_plain.cu - plain matmuls by WGMMA on Hopper; bf16 with float sums:
 *
 *     matmul_plain       y = a b, or a block's parts of it
 *     matmul_parts       sums the parts, always in the same order
 *
 * a is (M,K) or, with A_TRANSPOSED, (K,M); b is (K,N) or, with B_TRANSPOSED, (N,K). One producer
 * thread loads the operands by TMA into STAGES stages; a stage holds both operands for DEPTH values
 * of the dimension K. With ALTERNATE, each consumer warpgroup has every second tile, as in
 * matmul_hopper.cu. Without ALTERNATE, all consumers work on the same stage, and each consumer has
 * its own rows.
 *
 * A block processes tile after tile or, with SPLIT, its share of all K steps of all tiles, so that
 * every SM has the same work however few the tiles are (Osama et al. 2023, "Stream-K"). If a block
 * has only a part of a tile, its sums go to memory in register layout. A share may begin with a
 * part of one tile and end with a part of another.
 *
 * The tensor cores need ROWS * COLUMNS / 32 clocks per stage, for which ROWS + COLUMNS rows of 128
 * bytes come from L2: 43 bytes a clock for 192 x 192. Blocks in phase share operands from memory.
 * Parts are written and read once, which limits how large tiles should be.
 *
 *     CONSUMERS     2 or 3; with ALTERNATE 2
 *     TILES         64-row units of each consumer
 *     COLUMNS       of a tile: 64, 128, 192 or 256
 *     PANELS        of a warp, for y in bf16; 0: y is stored from registers
 *     Y_TRANSPOSED  y is (N,M)
 *     T_Y           type of y
 *
 * Loads beyond the bounds of a tensor give zeros; stores there are dropped. */
#include "hopper.cuh"

#if !defined CONSUMERS || !defined TILES || !defined COLUMNS || !defined STAGES || \
    !defined PANELS || !defined ALTERNATE || !defined SPLIT
#error "the host defines all of these"
#endif
#if !defined A_TRANSPOSED || !defined B_TRANSPOSED || !defined Y_TRANSPOSED || !defined T_Y
#error "the host defines these too"
#endif

enum {
    WARPGROUP = 128,
    THREADS = WARPGROUP * (CONSUMERS + 1),
    TOGETHER = ALTERNATE ? 1 : CONSUMERS, /* consumers of a tile */
    MULTIPLIERS = WARPGROUP * TOGETHER,  /* threads of a tile */
    DEPTH = 64,                          /* K of a stage */
    PITCH = 128,                         /* bytes of a panel row */
    BLOCK = 64 * PITCH,                  /* 64 panel rows */
    ROWS = 64 * TILES * TOGETHER, A_BYTES = ROWS / 64 * BLOCK,
    B_BYTES = COLUMNS / 64 * BLOCK, STAGE_BYTES = A_BYTES + B_BYTES,
    CHUNK = 64, /* columns of one epilogue step of a warp */
    CHUNKS = COLUMNS / CHUNK, PANEL_BYTES = 16 * 2 * CHUNK, AT_PANELS = STAGES * STAGE_BYTES,
    AT_BARRIERS = AT_PANELS + 4 * CONSUMERS * PANELS * PANEL_BYTES,
    FULL = AT_BARRIERS, /* per stage */
    EMPTY = FULL + 8 * STAGES,
    QUADS = TILES * COLUMNS / 8, /* float4s of sums per thread */
    CONSUMER_REGISTERS = CONSUMERS == 2 ? 240 : 160, PRODUCER_REGISTERS = CONSUMERS == 2 ? 24 : 32,
    SUM_THREADS = 256,
};
static_assert(COLUMNS % 64 == 0 && TILES * COLUMNS <= (CONSUMERS == 2 ? 384 : 192), "");
static_assert(!ALTERNATE || (CONSUMERS == 2 && !SPLIT), "");
static_assert(!PANELS || !Y_TRANSPOSED, "");

extern __shared__ __align__(1024) u8 shared_memory[];

#include "matmul_hopper.cuh"

/* A block's part of a tile. */
struct segment {
    int tile, first, steps; /* in K steps of the tile */
};
/* The first step, over all tiles, of a block's share, and the block that has a step. */
DEVICE int share_of(int block, int blocks, int all)
{
    return (int)((i64)block * all / blocks);
}
DEVICE int block_of(int step, int blocks, int all)
{
    return (int)((((i64)step + 1) * blocks - 1) / all);
}
/* A block's iteration over the steps of all tiles. */
struct walk {
    int at, end, steps;
};
DEVICE walk walk_of(const shape &s)
{
    int steps = ceil_div(s.K, DEPTH), all = tiles_of(s) * steps, block = (int)blockIdx.x,
        blocks = (int)gridDim.x;
    if (!SPLIT) return {block * steps, all, steps};
    return {share_of(block, blocks, all), share_of(block + 1, blocks, all), steps};
}
DEVICE bool has_more(const walk &w)
{
    return w.at < w.end;
}
DEVICE segment next_segment(walk &w)
{
    segment g = {w.at / w.steps, w.at % w.steps, 0};
    g.steps = min(w.steps - g.first, w.end - w.at);
    w.at += SPLIT ? g.steps : (int)gridDim.x * w.steps;
    return g;
}

DEVICE void produce(u32 base, const tensor_map *a_map, const tensor_map *b_map, const shape &s)
{
    ring r = {0, 0};
    walk w = walk_of(s);
#pragma unroll 1
    while (has_more(w)) {
        segment g = next_segment(w);
        position p = position_of(g.tile, s);
#pragma unroll 1
        for (int k = g.first; k < g.first + g.steps; k++, advance(r)) {
            mbarrier_wait(barrier_of(base + EMPTY, r), r.parity ^ 1);
            load_stage(base + r.stage * STAGE_BYTES, barrier_of(base + FULL, r), a_map, b_map, p,
                       k * DEPTH);
        }
    }
}

/* Floats 4i ... 4i+3 of a thread: two of a row, and two of the row 8 below. */
DEVICE void store_quad(T_Y *y, float4 q, int row, int column, int M, int N)
{
    if (column >= N) return;
    floats<2> upper = {{q.x, q.y}}, lower = {{q.z, q.w}};
    if (Y_TRANSPOSED) {
        y += (i64)column * M + row;
        UNROLL for (int i = 0; i < 2; i++) {
            if (row < M) y[(i64)i * M] = to<T_Y>(upper[i]);
            if (row + 8 < M) y[(i64)i * M + 8] = to<T_Y>(lower[i]);
        }
        return;
    }
    y += (i64)row * N + column;
    if (row < M) store<2>(y, upper);
    if (row + 8 < M) store<2>(y + 8 * (i64)N, lower);
}
DEVICE position position_in(int quad, int thread)
{
    int warps = thread / WARP, lane = thread % WARP, t = quad / (COLUMNS / 8);
    return {(warps / 4 * TILES + t) * 64 + warps % 4 * 16 + lane / 4,
            quad % (COLUMNS / 8) * 8 + lane % 4 * 2};
}
DEVICE float4 quad_of(const float (&sum)[TILES][COLUMNS / 2], int i)
{
    const float *s = sum[i / (COLUMNS / 8)] + i % (COLUMNS / 8) * 4;
    return make_float4(s[0], s[1], s[2], s[3]);
}

#if PANELS
DEVICE u32 in_panel(u32 panel, int j)
{
    int lane = threadIdx.x % WARP;
    return panel + panel_chunk(lane % 16, 2 * j + lane / 16);
}
/* Waits until all but N of this warp's store groups have read their panels. */
template <int N> DEVICE void wait_stores_read()
{
    if (threadIdx.x % WARP == 0) tma_store_wait_read<N>();
    __syncwarp();
}
/* Stores 16 rows of each of this warp's tiles. */
DEVICE void store_tile(const float (&sum)[TILES][COLUMNS / 2], u32 panels, int &count,
                       const tensor_map *y_map, int row, int column)
{
    UNROLL for (int i = 0; i < TILES * CHUNKS; i++) {
        const float *s = sum[i / CHUNKS] + i % CHUNKS * CHUNK / 2;
        u32 to = panels + count++ % PANELS * PANEL_BYTES;
        wait_stores_read<PANELS - 1>();
        UNROLL for (int j = 0; j < CHUNK / 16; j++) {
            u32 y[4];
            UNROLL for (int k = 0; k < 4; k++)
                y[k] = pack_bf16(s[8 * j + 2 * k], s[8 * j + 2 * k + 1]);
            stmatrix_x4(in_panel(to, j), y);
        }
        fence_async();
        __syncwarp();
        if (threadIdx.x % WARP == 0) {
            tma_store(y_map, to, column + i % CHUNKS * CHUNK, row + i / CHUNKS * 64, 0, 0, 0);
            tma_store_commit();
        }
    }
}
#endif

/* Parts are stored in this order: the first part of each block's share, then the last part of each
 * share. */
DEVICE void store_part(float4 *part, const float (&sum)[TILES][COLUMNS / 2], bool first, int thread)
{
    part += (i64)(blockIdx.x + (first ? 0 : gridDim.x)) * (QUADS * MULTIPLIERS) + thread;
    UNROLL for (int i = 0; i < QUADS; i++) part[i * MULTIPLIERS] = quad_of(sum, i);
}

DEVICE void consume(u32 base, int w, const tensor_map *y_map, T_Y *y, float4 *part, const shape &s)
{
    ring r = {0, 0};
    walk k = walk_of(s);
    int thread = ((int)threadIdx.x - WARPGROUP) % MULTIPLIERS, number = 0;
    float sum[TILES][COLUMNS / 2];
#if PANELS
    int warp = threadIdx.x / WARP % 4, count = 0;
    u32 panels = base + AT_PANELS + (4 * w + warp) * PANELS * PANEL_BYTES;
#endif
#pragma unroll 1
    for (; has_more(k); number++) {
        segment g = next_segment(k);
        if (ALTERNATE && number % CONSUMERS != w) {
            advance_by(r, g.steps);
            continue;
        }
        if (ALTERNATE && number > 0) await_turn(w);
        multiply(sum, base, r, w, g.steps, ALTERNATE && has_more(k));
        if (SPLIT && g.steps < k.steps) {
            store_part(part, sum, number == 0, thread);
            continue;
        }
        position p = position_of(g.tile, s);
#if PANELS
        store_tile(sum, panels, count, y_map, p.row + (ALTERNATE ? 0 : w * TILES * 64) + 16 * warp,
                   p.column);
#else
        UNROLL for (int i = 0; i < QUADS; i++) {
            position in = position_in(i, thread);
            store_quad(y, quad_of(sum, i), p.row + in.row, p.column + in.column, s.M, s.N);
        }
#endif
    }
#if PANELS
    if (threadIdx.x % WARP == 0) tma_store_wait_read<0>();
#endif
}

DEVICE void prepare(u32 base)
{
    if (threadIdx.x == 0) {
        UNROLL for (int s = 0; s < STAGES; s++) {
            mbarrier_init(base + FULL + 8 * s, 1);
            mbarrier_init(base + EMPTY + 8 * s, TOGETHER);
        }
        fence_barrier_init();
    }
    __syncwarp();
    __syncthreads();
}

/* Boxes of a_map: DEPTH columns, ROWS rows, or, with A_TRANSPOSED, 64 columns, DEPTH rows; of b_map
 * 64 columns, DEPTH rows, or, with B_TRANSPOSED, DEPTH columns, COLUMNS rows; of y_map CHUNK
 * columns, 16 rows. `part` has two tiles of floats per block, or one tile if every share ends where
 * a tile ends. */
KERNEL_MIN(THREADS, 1)
matmul_plain(const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map,
#if PANELS
              const __grid_constant__ tensor_map y_map,
#endif
              T_Y *y, float4 *part, int M, int N, int K, int group)
{
    u32 base = shared_address(shared_memory);
    int warp = __shfl_sync(~0u, threadIdx.x / WARP, 0);
    const shape s = {M, N, K, group};
    prepare(base);
    dependents_start();
    if (warp < 4) {
        registers_dec<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) produce(base, &a_map, &b_map, s);
    } else {
        registers_inc<CONSUMER_REGISTERS>();
#if PANELS
        consume(base, warp / 4 - 1, &y_map, y, part, s);
#else
        consume(base, warp / 4 - 1, 0, y, part, s);
#endif
    }
}

#if SPLIT
/* One thread per float4; `blocks` is the grid of matmul_plain. */
KERNEL(SUM_THREADS)
matmul_parts(const float4 *part, T_Y *y, int M, int N, int K, int group, int blocks)
{
    enum { TILE = QUADS * MULTIPLIERS };
    const shape s = {M, N, K, group};
    int steps = ceil_div(K, DEPTH), all = tiles_of(s) * steps,
        at = (int)(blockIdx.x * SUM_THREADS + threadIdx.x);
    int tile = at / TILE, begin = tile * steps;
    int first = block_of(begin, blocks, all), last = block_of(begin + steps - 1, blocks, all);
    /* the tile's first block has it at the end of its share */
    bool ends = share_of(first, blocks, all) < begin;
    at %= TILE;
    part += at;
    position p = position_of(tile, s), in = position_in(at / MULTIPLIERS, at % MULTIPLIERS);
    dependents_wait();
    if (first == last) return; /* that block has stored the tile */
    float4 sum = __ldcg(part + (i64)(ends ? blocks + first : first) * TILE);
#pragma unroll 8
    for (int i = first + 1; i <= last; i++) {
        float4 o = __ldcg(part + (i64)i * TILE);
        sum.x += o.x, sum.y += o.y, sum.z += o.z, sum.w += o.w;
    }
    store_quad(y, sum, p.row + in.row, p.column + in.column, M, N);
}
#endif
