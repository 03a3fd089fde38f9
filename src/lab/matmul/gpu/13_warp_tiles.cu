/* 13_warp_tiles.cu - larger tiles: 64 x 64 sums in a warp, 256 x 128 in a block.
 *
 * A warp that multiplies 64 x 16 by 16 x 32 loads 3 KiB for 64 Ki operations; with 64 x 64 sums it
 * loads 4 KiB for 128 Ki operations. To keep mma.sync busy, shared memory must now deliver 117
 * bytes per clock, and it can deliver 128. The sums take 128 of the 255 registers of a thread, so
 * only one block fits on a multiprocessor, and no other block can fill its waiting times. So the
 * block overlaps its own work: while the tensor cores use one set of operands, the next set is
 * loaded into other registers, also from the next tile. Tiles are twice as deep, for half as many
 * barriers. A load of operands cannot overtake a copy into shared memory, so the copies must not
 * delay the loads: their addresses take few instructions (out-of-bounds addresses are clamped, not
 * branched around), and each step starts a quarter of the copies. Blocks that run at the same time
 * should share rows of A and columns of B, which then come from L2. So blocks are numbered down 8
 * tiles, then to the right, until a band of 8 tile rows is done. This is about the limit of
 * mma.sync: on an H100 it reaches two thirds of the tensor cores' rate, and only wgmma reaches
 * more. Expect 59 % of cuBLASLt's speed there. */
#include "mma.cuh"

constexpr bool TENSOR_FLOAT = sizeof(ELEMENT) == 4; /* tf32: B is (n,k); bf16: B is (k,n) */
constexpr int EACH = 16 / sizeof(ELEMENT);          /* elements of a chunk of 16 bytes */
constexpr int ROWS = 256, COLUMNS = 128, THREADS = 256, STAGES = 3, GROUP = 8;
constexpr int CHUNKS = 8, K = CHUNKS * EACH, STEPS = CHUNKS / 2; /* K: values of k in a tile */
constexpr int B_ROWS = TENSOR_FLOAT ? COLUMNS : K; /* a tile of B, as it lies in memory */
constexpr int B_CHUNKS = TENSOR_FLOAT ? CHUNKS : COLUMNS / EACH;
constexpr int A_BYTES = ROWS * CHUNKS * 16, STAGE_BYTES = A_BYTES + B_ROWS * B_CHUNKS * 16;
constexpr int LAST_STAGE = (STAGES - 1) * STAGE_BYTES;

extern __shared__ __align__(1024) u8 shared[]; /* STAGES times a tile of A and one of B */

union chunk {
    uint4 all;
    ELEMENT one[EACH];
};

/* Starts copying one of STEPS parts of a tile to shared memory. The tile begins at `row`, `column`
 * of a matrix of rows x columns, and is zero beyond the matrix. WHOLE: rows are multiples of 16
 * bytes and shorter than 4 GB; otherwise the elements are copied one by one, synchronously. */
template <bool WHOLE, int TILE_ROWS, int TILE_CHUNKS>
DEVICE void copy_part(int part, u8 *to, const ELEMENT *from, int row, int rows, int column,
                      int columns)
{
    constexpr int PART = TILE_ROWS / STEPS;
    if constexpr (WHOLE) {
        constexpr int TURN = THREADS / TILE_CHUNKS; /* rows that the block copies at a time */
        int r0 = threadIdx.x / TILE_CHUNKS, c0 = threadIdx.x % TILE_CHUNKS, c = column + c0 * EACH;
        u32 mine = shared_address(to) + swizzle<TILE_CHUNKS>(r0, c0), size = sizeof(ELEMENT);
        const u8 *p = (const u8 *)from + (u32)min(c, columns - EACH) * size; /* clamped */
        UNROLL for (int t = part * PART; t < (part + 1) * PART; t += TURN) {
            int r = row + r0 + t;
            cp_async_16(mine + t * TILE_CHUNKS * 16, p + (u64)min(r, rows - 1) * (columns * size),
                        r < rows && c < columns ? 16 : 0);
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < PART * TILE_CHUNKS; i += THREADS) {
            int t = part * PART + i / TILE_CHUNKS, c0 = i % TILE_CHUNKS;
            int r = row + t, c = column + c0 * EACH;
            chunk x;
            x.all = make_uint4(0, 0, 0, 0);
            UNROLL for (int e = 0; e < EACH; e++)
                if (r < rows && c + e < columns) x.one[e] = from[(i64)r * columns + c + e];
            *(uint4 *)(to + swizzle<TILE_CHUNKS>(t, c0)) = x.all;
        }
    }
}
/* Rounds to tf32, since mma would truncate; bf16 is left unchanged. */
DEVICE void round(u32 (&r)[4])
{
    if constexpr (TENSOR_FLOAT)
        UNROLL for (int i = 0; i < 4; i++) r[i] = cvt_tf32(__uint_as_float(r[i]));
}
/* The address of 16 bytes that a lane passes to ldmatrix. For A: 16 rows of one chunk, then 16 rows
 * of the next chunk. For B: the order makes registers 0, 1 the operand of 8 columns and registers
 * 2, 3 the operand of the next 8. The swizzle depends on the last 3 bits of a row's number, so 16
 * rows further is a constant offset, and two chunks further is an XOR by 32. */
DEVICE u32 lane_in_a(int lane, int down)
{
    return swizzle<CHUNKS>(down + lane % 16, lane / 16);
}
DEVICE u32 lane_in_b(int lane, int across)
{
    if (TENSOR_FLOAT) return swizzle<B_CHUNKS>(across + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    return swizzle<B_CHUNKS>(lane % 16, across / 8 + lane / 16);
}
/* The operands of a step, 16 (bf16) or 8 (tf32) values of k: 64 rows of A and 64 columns of B. */
struct fragments {
    u32 a[4][4], b[4][4];
};
DEVICE void load_fragments(fragments &f, u32 a, u32 b, int stage, int step)
{
    UNROLL for (int j = 0; j < 4; j++)
        if (TENSOR_FLOAT)
            ldmatrix_x4(f.b[j], (b ^ 32 * step) + stage + 16 * j * B_CHUNKS * 16);
        else
            ldmatrix_x4_trans(f.b[j], (b ^ 32 * j) + stage + 16 * step * B_CHUNKS * 16);
    UNROLL for (int i = 0; i < 4; i++)
        ldmatrix_x4(f.a[i], (a ^ 32 * step) + stage + 16 * i * CHUNKS * 16);
}
DEVICE void multiply(float (&sum)[4][8][4], fragments &f)
{
    UNROLL for (int i = 0; i < 4; i++) {
        round(f.a[i]);
        round(f.b[i]);
    }
    UNROLL for (int i = 0; i < 4; i++)
        UNROLL for (int go = 0; go < 8; go++) {
            int j = i % 2 ? 7 - go : go; /* back and forth: the next row reuses the last operand */
            u32 b0 = f.b[j / 2][j % 2 * 2], b1 = f.b[j / 2][j % 2 * 2 + 1];
            if constexpr (TENSOR_FLOAT)
                mma_m16n8k8_tf32(sum[i][j], f.a[i], b0, b1);
            else
                mma_m16n8k16(sum[i][j], f.a[i], b0, b1);
        }
}
/* Stores two neighbors in a row of C, the first at an even column. */
DEVICE void store_two(ELEMENT *row, i64 column, i64 n, float x, float y)
{
    if (n % 2 == 0 && column < n) store<2>(row + column, floats<2>{{x, y}});
    if (n % 2 && column < n) row[column] = to<ELEMENT>(x);
    if (n % 2 && column + 1 < n) row[column + 1] = to<ELEMENT>(y);
}

template <bool WHOLE>
DEVICE void multiply_tiles(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, int m, int n, int k)
{
    int tiles_down = ceil_div(m, ROWS), tiles_across = ceil_div(n, COLUMNS);
    int group = blockIdx.x / (GROUP * tiles_across) * GROUP; /* the group's first tile row */
    int place = blockIdx.x - group * tiles_across; /* in the group */
    int high = min(GROUP, tiles_down - group);
    int row = (group + place % high) * ROWS, column = place / high * COLUMNS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int down = warp / 2 * 64, across = warp % 2 * 64; /* the 64 x 64 sums of this warp */
    u32 first = shared_address(shared);
    u32 in_a = first + lane_in_a(lane, down), in_b = first + A_BYTES + lane_in_b(lane, across);
    int tiles = ceil_div(k, K); /* along k */
    float sum[4][8][4] = {};    /* 16 x 8 each */
    fragments f[2];

    auto copy = [&](int tile, int stage, int part) {
        u8 *to = shared + stage;
        copy_part<WHOLE, ROWS, CHUNKS>(part, to, a, row, m, tile * K, k);
        if (TENSOR_FLOAT)
            copy_part<WHOLE, B_ROWS, B_CHUNKS>(part, to + A_BYTES, b, column, n, tile * K, k);
        else
            copy_part<WHOLE, B_ROWS, B_CHUNKS>(part, to + A_BYTES, b, tile * K, k, column, n);
        if (part == STEPS - 1) cp_async_commit();
    };
    for (int tile = 0; tile < STAGES - 1; tile++)
        UNROLL for (int part = 0; part < STEPS; part++) copy(tile, tile * STAGE_BYTES, part);
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    int stage = 0, free = LAST_STAGE; /* offsets of the stage that is read, and of the free one */
    load_fragments(f[0], in_a, in_b, stage, 0);
    copy(STAGES - 1, free, 0);
    for (int tile = 0; tile < tiles; tile++)
        UNROLL for (int step = 0; step < STEPS; step++) {
            bool last = step == STEPS - 1; /* the operands loaded next are those of the next tile */
            if (last) {
                free = stage;
                stage = stage < LAST_STAGE ? stage + STAGE_BYTES : 0;
                cp_async_wait<STAGES - 2>(); /* this thread's copies of the next tile arrived */
                __syncthreads();             /* all threads have waited; the last tile is free */
            }
            load_fragments(f[(step + 1) % 2], in_a, in_b, stage, (step + 1) % STEPS);
            copy(tile + STAGES - 1 + last, free, (step + 1) % STEPS);
            multiply(sum, f[step % 2]);
        }
    UNROLL for (int i = 0; i < 8; i++) { /* sums 0, 1 are in row lane / 4, 2, 3 in row + 8 */
        i64 r = row + down + 8 * i + lane / 4;
        UNROLL for (int j = 0; j < 8; j++)
            if (r < m)
                store_two(c + r * n, column + across + 8 * j + lane % 4 * 2, n,
                          sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
    }
}

KERNEL(THREADS) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    if (k % EACH == 0 && n % EACH == 0)
        multiply_tiles<true>(c, a, b, m, n, k);
    else
        multiply_tiles<false>(c, a, b, m, n, k);
}
