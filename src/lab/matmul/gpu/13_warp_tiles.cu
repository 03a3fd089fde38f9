/* 13_warp_tiles.cu - larger tiles: 64 x 64 sums in a warp, 128 x 256 in a block.
 *
 * A warp that multiplies 64 x 16 by 16 x 32 loads 3 KB for 64 Ki operations; with 64 x 64 sums it
 * loads 4 KB for 128 Ki. To keep mma.sync busy shared memory must now deliver 117 bytes per clock,
 * and it has 128. The sums take 128 of the 255 registers of a thread, so there is one block on a
 * multiprocessor, and no other can fill its pauses. It fills them itself: while the tensor cores
 * use one set of operands, the next is loaded into other registers, across the border of tiles too,
 * and tiles are twice as deep, for half as many barriers.
 * Blocks that run at the same time should share rows of A and columns of B, which then come from
 * L2. So blocks are numbered down 8 tiles, then to the right, until a band of 8 tile rows is done.
 * This is about what mma.sync can do. On an H100 it reaches two thirds of the tensor cores' rate;
 * the rest takes wgmma. Expect 60 % of cuBLASLt there. */
#include "mma.cuh"

constexpr bool TENSOR_FLOAT = sizeof(ELEMENT) == 4; /* tf32: B is (n,k); bf16: B is (k,n) */
constexpr int EACH = 16 / sizeof(ELEMENT);          /* elements of a chunk of 16 bytes */
constexpr int ROWS = 128, COLUMNS = 256, THREADS = 256, STAGES = 3, GROUP = 8;
constexpr int CHUNKS = 8, K = CHUNKS * EACH, STEPS = CHUNKS / 2; /* of k in a tile */
constexpr int B_ROWS = TENSOR_FLOAT ? COLUMNS : K; /* a tile of B, as it lies in memory */
constexpr int B_CHUNKS = TENSOR_FLOAT ? CHUNKS : COLUMNS / EACH;
constexpr int A_BYTES = ROWS * CHUNKS * 16, STAGE_BYTES = A_BYTES + B_ROWS * B_CHUNKS * 16;

extern __shared__ __align__(1024) u8 shared[]; /* STAGES times a tile of A and one of B */

union chunk {
    uint4 all;
    ELEMENT one[EACH];
};

/* Starts copying a tile to shared memory. The matrix has `rows` and `columns` from `from` on;
 * beyond them the tile is zero. WHOLE: rows are multiples of 16 bytes; others are copied at once,
 * one element after the other. */
template <bool WHOLE, int TILE_ROWS, int TILE_CHUNKS>
DEVICE void copy_tile(u8 *to, const ELEMENT *from, i64 pitch, int rows, int columns)
{
    if constexpr (WHOLE) {
        constexpr int TURN = THREADS / TILE_CHUNKS; /* rows that the block copies at a time */
        int r0 = threadIdx.x / TILE_CHUNKS, c = threadIdx.x % TILE_CHUNKS;
        const ELEMENT *p = from + r0 * pitch + c * EACH;
        UNROLL for (int r = 0; r < TILE_ROWS; r += TURN) {
            bool there = r0 + r < rows && c * EACH < columns;
            cp_async_16(shared_address(to + swizzle<TILE_CHUNKS>(r0 + r, c)),
                        there ? p + r * pitch : from, there ? 16 : 0);
        }
    } else {
#pragma unroll 1
        for (int i = threadIdx.x; i < TILE_ROWS * TILE_CHUNKS; i += THREADS) {
            int r = i / TILE_CHUNKS, c = i % TILE_CHUNKS;
            chunk x;
            x.all = make_uint4(0, 0, 0, 0);
            UNROLL for (int e = 0; e < EACH; e++)
                if (r < rows && c * EACH + e < columns) x.one[e] = from[r * pitch + c * EACH + e];
            *(uint4 *)(to + swizzle<TILE_CHUNKS>(r, c)) = x.all;
        }
    }
}
/* Rounds to tf32, since mma would truncate; two bf16 stay as they are. */
DEVICE void round(u32 (&r)[4])
{
    if constexpr (TENSOR_FLOAT)
        UNROLL for (int i = 0; i < 4; i++) r[i] = cvt_rna_tf32(__uint_as_float(r[i]));
}
/* Which row of 16 bytes a lane names to ldmatrix. Of A: 16 rows of one chunk, then of the next. Of
 * B: in the order that makes registers 0, 1 the operand of 8 columns and 2, 3 that of the next 8.
 * The swizzle looks at the last 3 bits of a row, so 16 rows further is an offset, and two chunks
 * further an XOR by 32. */
DEVICE u32 lane_in_a(int lane, int down)
{
    return swizzle<CHUNKS>(down + lane % 16, lane / 16);
}
DEVICE u32 lane_in_b(int lane, int across)
{
    if (TENSOR_FLOAT) return swizzle<B_CHUNKS>(across + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    return swizzle<B_CHUNKS>(lane % 16, across / 8 + lane / 16);
}
/* The operands of a step, 16 bf16 or 8 tf32 of k: 64 rows of A and 64 columns of B. */
struct fragments {
    u32 a[4][4], b[4][4];
};
DEVICE void load_fragments(fragments &f, u32 a, u32 b, int step)
{
    UNROLL for (int i = 0; i < 4; i++) ldmatrix_x4(f.a[i], (a ^ 32 * step) + 16 * i * CHUNKS * 16);
    UNROLL for (int j = 0; j < 4; j++)
        if (TENSOR_FLOAT)
            ldmatrix_x4(f.b[j], (b ^ 32 * step) + 16 * j * B_CHUNKS * 16);
        else
            ldmatrix_x4_trans(f.b[j], (b ^ 32 * j) + 16 * step * B_CHUNKS * 16);
}
DEVICE void multiply(float (&sum)[4][8][4], fragments &f)
{
    UNROLL for (int i = 0; i < 4; i++) {
        round(f.a[i]);
        round(f.b[i]);
    }
    UNROLL for (int i = 0; i < 4; i++)
        UNROLL for (int j = 0; j < 8; j++) {
            u32 b0 = f.b[j / 2][j % 2 * 2], b1 = f.b[j / 2][j % 2 * 2 + 1];
            if constexpr (TENSOR_FLOAT)
                mma_m16n8k8_tf32(sum[i][j], f.a[i], b0, b1);
            else
                mma_m16n8k16(sum[i][j], f.a[i], b0, b1);
        }
}
/* Two neighbours in a row of C, at an even column. */
DEVICE void store_two(ELEMENT *row, i64 column, i64 n, float x, float y)
{
    if (n % 2 == 0 && column < n) store<2>(row + column, floats<2>{{x, y}});
    if (n % 2 && column < n) row[column] = to<ELEMENT>(x);
    if (n % 2 && column + 1 < n) row[column + 1] = to<ELEMENT>(y);
}

template <bool WHOLE>
DEVICE void multiply_tiles(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    int tiles_down = ceil_div(m, ROWS), tiles_across = ceil_div(n, COLUMNS);
    int group = blockIdx.x / (GROUP * tiles_across) * GROUP; /* its first tile row */
    int place = blockIdx.x - group * tiles_across; /* in the group */
    int high = min(GROUP, tiles_down - group);
    i64 row = (i64)(group + place % high) * ROWS, column = (i64)(place / high) * COLUMNS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int down = warp / 4 * 64, across = warp % 4 * 64; /* the 64 x 64 sums of this warp */
    u32 first = shared_address(shared);
    u32 in_a = first + lane_in_a(lane, down), in_b = first + A_BYTES + lane_in_b(lane, across);
    int tiles = ceil_div(k, K); /* along k */
    float sum[4][8][4] = {};    /* 16 x 8 each */
    fragments f[2];

    auto copy = [&](int tile) {
        u8 *to = shared + tile % STAGES * STAGE_BYTES;
        i64 at = (i64)tile * K;
        if (tile < tiles) {
            copy_tile<WHOLE, ROWS, CHUNKS>(to, a + row * k + at, k, m - row, k - at);
            if (TENSOR_FLOAT)
                copy_tile<WHOLE, B_ROWS, B_CHUNKS>(to + A_BYTES, b + column * k + at, k, n - column,
                                                   k - at);
            else
                copy_tile<WHOLE, B_ROWS, B_CHUNKS>(to + A_BYTES, b + at * n + column, n, k - at,
                                                   n - column);
        }
        cp_async_commit();
    };
    for (int tile = 0; tile < STAGES - 1; tile++) copy(tile);
    cp_async_wait<STAGES - 2>();
    __syncthreads();
    load_fragments(f[0], in_a, in_b, 0);
    for (int tile = 0, stage = 0; tile < tiles; tile++) {
        UNROLL for (int step = 0; step < STEPS; step++) {
            if (step == STEPS - 1) { /* what follows is the first step of the next tile */
                stage = (tile + 1) % STAGES * STAGE_BYTES;
                cp_async_wait<STAGES - 2>(); /* the next tile is there, */
                __syncthreads();             /* for all, and the place of this one is free */
            }
            load_fragments(f[(step + 1) % 2], in_a + stage, in_b + stage, (step + 1) % STEPS);
            if (step == 0) copy(tile + STAGES - 1);
            multiply(sum, f[step % 2]);
        }
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
