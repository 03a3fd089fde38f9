/* 26_turns.cu - a tile for each consumer: one multiplies while the other stores.
 *
 * Consumers that share a tile finish it together, and nothing is multiplied until both have rounded
 * their sums and written them to shared memory. The shorter k is, the larger is this part of the
 * time. Here each consumer computes a whole tile of 128 x 192, with 192 sums in each thread, and
 * the two consumers take turns. The consumer that multiplies has the tensor cores for itself, so it
 * issues the next group of wgmma before it waits for the previous group.
 *
 * A consumer skips the stages of the other consumer's tile. It must not wait for a stage too early,
 * because the parity of a barrier does not distinguish a phase from the phase two rounds before. So
 * a consumer first waits for its turn, which the other consumer signals when it has issued its last
 * wgmma.
 *
 * The tile also suits other sizes. For 3000 x 5000, 648 tiles of 128 x 192 fill 4.9 of 5 rounds of
 * 132 multiprocessors, and 480 tiles of 128 x 256 fill 3.6 of 4 rounds. For 4096 x 4096 these tiles
 * fill 5.3 of 6 and 3.9 of 4 rounds, so there the larger tile is better. */
#include "hopper.cuh"

enum {
    CONSUMERS = 2, WARPGROUP = 128,
    ROWS = 128, COLUMNS = 192, DEPTH = 64, STAGES = 4,
    PANEL = 64 * 128, /* bytes of 64 rows of 128 bytes */
    A_BYTES = ROWS / 64 * PANEL, B_BYTES = COLUMNS / 64 * PANEL, STAGE = A_BYTES + B_BYTES,
    EACH = DEPTH, PANELS = 3, PANEL_BYTES = 16 * 128, /* columns of a panel of C */
    FULL = STAGES * STAGE + 4 * CONSUMERS * PANELS * PANEL_BYTES, EMPTY = FULL + 8 * STAGES,
    GROUP = 8, /* rows of tiles */
    WHOLE = 16 / sizeof(ELEMENT), WORDS = 2, PAD_THREADS = 256, /* of the copy */
};

/* --- the copy --- */
/* The number of rows to copy: all rows, or 0 if they begin at multiples of 32 bytes. */
DEVICE int copied_rows(i64 rows, i64 columns)
{
    return columns * sizeof(ELEMENT) % 32 ? (int)rows : 0;
}

/* The 16 bytes that begin at byte `bytes` (0 ... 14) of two consecutive words of 16 bytes. */
DEVICE uint4 shifted(uint4 low, uint4 high, int bytes)
{
    u32 w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    if (bytes & 8) UNROLL for (int i = 0; i < 6; i++) w[i] = w[i + 2];
    if (bytes & 4) UNROLL for (int i = 0; i < 5; i++) w[i] = w[i + 1];
    if (bytes & 2) UNROLL for (int i = 0; i < 4; i++) w[i] = w[i] >> 16 | w[i + 1] << 16;
    return make_uint4(w[0], w[1], w[2], w[3]);
}

/* A matrix to copy: `words` words of 16 bytes go to scratch, `across` of them for each row. */
struct copied {
    const ELEMENT *from;
    i64 columns, size;
    int across, words;
};
DEVICE copied copied_of(const ELEMENT *from, i64 rows, i64 columns)
{
    int across = round_up((int)columns, DEPTH) / WHOLE;
    return {from, columns, rows * columns, across, copied_rows(rows, columns) * across};
}

/* Word i of the matrix. If the last word ends beyond the matrix, the last element is repeated. */
DEVICE uint4 word_at(const copied &x, i64 i)
{
    if ((i + 1) * WHOLE <= x.size) return ((const uint4 *)x.from)[i];
    __align__(16) ELEMENT e[WHOLE];
    UNROLL for (int j = 0; j < WHOLE; j++)
        e[j] = x.from[min(i * WHOLE + j, x.size - 1)];
    return *(uint4 *)e;
}

/* Scratch has A's words, then B's. A thread writes WORDS words, each made from two words of the
 * matrix. A word at the end of a row may contain elements of the next row, which TMA ignores. */
KERNEL(PAD_THREADS)
matmul_pad(ELEMENT *, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k, ELEMENT *scratch)
{
    copied of_a = copied_of(a, m, k), of_b = copied_of(b, k, n);
    uint4 low[WORDS], high[WORDS];
    int shift[WORDS];
    int begin = blockIdx.x * (WORDS * PAD_THREADS) + threadIdx.x, end = of_a.words + of_b.words;
    UNROLL for (int j = 0; j < WORDS; j++) {
        int i = begin + j * PAD_THREADS;
        if (i >= end) continue;
        copied x = i < of_a.words ? of_a : of_b;
        u32 at = i < of_a.words ? i : i - of_a.words, row = at / x.across;
        i64 first = min(row * x.columns + (at - row * x.across) * WHOLE, x.size - 1);
        shift[j] = (int)(first % WHOLE) * (int)sizeof(ELEMENT);
        low[j] = word_at(x, first / WHOLE);
        high[j] = word_at(x, min(first / WHOLE + 1, (x.size - 1) / WHOLE));
    }
    UNROLL for (int j = 0; j < WORDS; j++) {
        int i = begin + j * PAD_THREADS;
        if (i < end) ((uint4 *)scratch)[i] = shifted(low[j], high[j], shift[j]);
    }
}

/* --- the matmul --- */
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

/* Writes part `i` of a warp's sums, 128 bytes of each of its 16 rows, to a panel. */
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

/* Like store_sums, but threads store the panels, for a C whose rows TMA cannot store, or stores
 * slowly because 128 bytes of a row lie in two lines of L2 and TMA writes each part separately. */
template <typename WORD>
DEVICE void store_rows(ELEMENT *c, u8 *panels, const float (&sum)[COLUMNS / 2], int row, int column,
                       int m, int n)
{
    enum { ACROSS = 128 / sizeof(WORD) }; /* words of a row of a panel */
    UNROLL for (int first = 0; first < COLUMNS / EACH; first += PANELS, column += PANELS * EACH) {
        __syncwarp(); /* all lanes have read the panels */
        UNROLL for (int i = 0; i < PANELS; i++)
            fill_panel(panels + i * PANEL_BYTES, sum, first + i);
        __syncwarp();
#pragma unroll 4
        for (int i = threadIdx.x % WARP; i < 16 * ACROSS; i += WARP) {
            int down = i / ACROSS, byte = i % ACROSS * (int)sizeof(WORD);
            int right = column + byte / (int)sizeof(ELEMENT);
            const u8 *from = panels + panel_chunk(down, byte / 16) + byte % 16;
            WORD *to = (WORD *)(c + (i64)(row + down) * n + right);
            UNROLL for (int p = 0; p < PANELS; p++)
                if (row + down < m && right + p * EACH < n)
                    to[p * ACROSS] = *(const WORD *)(from + p * PANEL_BYTES);
        }
    }
}

DEVICE void init_barriers(u32 shared)
{
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            mbarrier_init(shared + FULL + 8 * s, 1);
            mbarrier_init(shared + EMPTY + 8 * s, 1); /* only one consumer reads a stage */
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
                if (n % EACH == 0)
                    store_sums(&c_map, panels, sum[half], row, at.column);
                else if (n % WHOLE == 0)
                    store_rows<uint4>(c, panels, sum[half], row, at.column, (int)m, (int)n);
                else
                    store_rows<ELEMENT>(c, panels, sum[half], row, at.column, (int)m, (int)n);
            }
        }
        if (threadIdx.x % WARP == 0) tma_store_wait_read<0>(); /* before shared memory is freed */
    }
}
