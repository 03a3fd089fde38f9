/* 12_pipelined.cu - cp.async: the next tiles are on their way while this one is multiplied.
 *
 * Until now a block loads, waits, multiplies and waits again: memory and tensor cores take turns.
 * cp.async copies 16 bytes from memory to shared memory without a register, so a block can start
 * the copies of tiles ahead of time. Shared memory holds STAGES tiles: one is multiplied while the
 * others are copied. With two stages, the latency of memory must fit into the time of multiplying
 * one tile; with four stages, into the time of three tiles.
 * One barrier per tile suffices. After the barrier the tile has arrived for all warps, and no warp
 * reads the previous tile any more, so the next copy can replace the previous tile. Each iteration
 * commits one group of copies, at the end an empty group, so each wait is for "all but the last
 * STAGES - 2 groups".
 * The limit is now shared memory: to keep mma.sync busy on an H100, warps with 64 x 32 sums would
 * need 170 bytes per clock and multiprocessor, and shared memory delivers 128. */
#include "mma.cuh"

constexpr bool TENSOR_FLOAT = sizeof(ELEMENT) == 4; /* tf32: B is (n,k); bf16: B is (k,n) */
constexpr int EACH = 16 / sizeof(ELEMENT);          /* elements of a chunk of 16 bytes */
constexpr int ROWS = 128, COLUMNS = 128, THREADS = 256;
constexpr int CHUNKS = 4, K = CHUNKS * EACH;                   /* K: values of k in a tile */
constexpr int B_ROWS = TENSOR_FLOAT ? COLUMNS : K; /* a tile of B, as it lies in memory */
constexpr int B_CHUNKS = TENSOR_FLOAT ? CHUNKS : COLUMNS / EACH;
constexpr int A_BYTES = ROWS * CHUNKS * 16, STAGE_BYTES = A_BYTES + B_ROWS * B_CHUNKS * 16;

extern __shared__ __align__(1024) u8 shared[]; /* STAGES times a tile of A and one of B */

union chunk {
    uint4 all;
    ELEMENT one[EACH];
};

/* Starts copying a tile to shared memory. The matrix has `rows` and `columns` from `from` on;
 * beyond them the tile is zero. WHOLE: rows are multiples of 16 bytes long; otherwise the elements
 * are copied one by one, synchronously. */
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
/* Rounds to tf32, since mma would truncate; bf16 is left unchanged. */
DEVICE void round(u32 (&r)[4])
{
    if constexpr (TENSOR_FLOAT)
        UNROLL for (int i = 0; i < 4; i++) r[i] = cvt_tf32(__uint_as_float(r[i]));
}
DEVICE void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    if constexpr (TENSOR_FLOAT)
        mma_m16n8k8_tf32(sum, a, b0, b1);
    else
        mma_m16n8k16(sum, a, b0, b1);
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
/* sum += one tile of A times one of B; a, b: the lane's addresses in the tiles */
DEVICE void multiply_tile(float (&sum)[4][4][4], u32 a, u32 b)
{
    UNROLL for (int step = 0; step < CHUNKS / 2; step++) { /* 16 (bf16) or 8 (tf32) values of k */
        u32 left[4][4], right[2][4];
        UNROLL for (int i = 0; i < 4; i++) {
            ldmatrix_x4(left[i], (a ^ 32 * step) + 16 * i * CHUNKS * 16);
            round(left[i]);
        }
        UNROLL for (int j = 0; j < 2; j++) {
            if (TENSOR_FLOAT)
                ldmatrix_x4(right[j], (b ^ 32 * step) + 16 * j * B_CHUNKS * 16);
            else
                ldmatrix_x4_trans(right[j], (b ^ 32 * j) + 16 * step * B_CHUNKS * 16);
            round(right[j]);
        }
        UNROLL for (int i = 0; i < 4; i++)
            UNROLL for (int j = 0; j < 4; j++)
                multiply(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
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
DEVICE void multiply_tiles(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    i64 row = (i64)blockIdx.y * ROWS, column = (i64)blockIdx.x * COLUMNS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int down = warp / 4 * 64, across = warp % 4 * 32; /* the 64 x 32 sums of this warp */
    u32 first = shared_address(shared);
    u32 in_a = first + lane_in_a(lane, down), in_b = first + A_BYTES + lane_in_b(lane, across);
    int tiles = ceil_div(k, K); /* along k */
    float sum[4][4][4] = {};    /* 16 x 8 each */

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
    for (int tile = 0; tile < tiles; tile++) {
        cp_async_wait<STAGES - 2>(); /* this thread's copies of this tile have arrived */
        __syncthreads();             /* all threads have waited; the previous tile is free */
        copy(tile + STAGES - 1);
        int stage = tile % STAGES * STAGE_BYTES;
        multiply_tile(sum, in_a + stage, in_b + stage);
    }
    UNROLL for (int i = 0; i < 8; i++) { /* sums 0, 1 are in row lane / 4, 2, 3 in row + 8 */
        i64 r = row + down + 8 * i + lane / 4;
        UNROLL for (int j = 0; j < 4; j++)
            if (r < m)
                store_two(c + r * n, column + across + 8 * j + lane % 4 * 2, n,
                          sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
    }
}

KERNEL_MIN(THREADS, 2) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    if (k % EACH == 0 && n % EACH == 0)
        multiply_tiles<true>(c, a, b, m, n, k);
    else
        multiply_tiles<false>(c, a, b, m, n, k);
}
