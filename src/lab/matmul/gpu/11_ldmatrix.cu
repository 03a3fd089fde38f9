/* 11_ldmatrix.cu - ldmatrix and a swizzled tile: operands from shared memory without conflicts.
 *
 * ldmatrix loads four 8 x 8 blocks of bf16 and distributes them over the registers of a warp in the
 * layout of mma.sync: each lane passes the address of one row of a block, 16 bytes, and gets four
 * registers. One ldmatrix replaces four 32-bit loads. The transposed form of ldmatrix reads B
 * (k,n), since this form puts elements of two rows into a register. To ldmatrix, a tf32 element is
 * a pair of bf16, and a transposition would separate its halves, so B is (n,k) in tf32. A block is
 * read without conflicts if its 8 rows lie in different banks. In a plain tile, whose rows are 64
 * or 256 bytes apart, 4 or 8 rows are in the same banks. So the chunks of 16 bytes of a row are
 * permuted: swizzle() XORs the number of the chunk with bits of the number of the row. Stores of
 * whole rows remain free of conflicts. ldmatrix alone gains nothing, as it waits for the same
 * banks; with the swizzle the kernel is more than 1.5 times as fast. */
#include "mma.cuh"

constexpr bool TENSOR_FLOAT = sizeof(ELEMENT) == 4; /* tf32: B is (n,k); bf16: B is (k,n) */
constexpr int EACH = 16 / sizeof(ELEMENT);          /* elements of a chunk of 16 bytes */
constexpr int ROWS = 128, COLUMNS = 128, THREADS = 256, CHUNKS = 4, K = CHUNKS * EACH;
constexpr int B_ROWS = TENSOR_FLOAT ? COLUMNS : K; /* a tile of B, as it lies in memory */
constexpr int B_CHUNKS = TENSOR_FLOAT ? CHUNKS : COLUMNS / EACH;

union chunk {
    uint4 all;
    ELEMENT one[EACH];
};

/* The chunk at `first` of a row that ends at `end`; elements beyond the end are zero. WHOLE: the
 * chunk's address is a multiple of 16 bytes, and the chunk does not cross the end. */
template <bool WHOLE>
DEVICE uint4 load_chunk(const ELEMENT *row, int first, int end)
{
    chunk r;
    r.all = make_uint4(0, 0, 0, 0);
    if constexpr (WHOLE) {
        if (first < end) r.all = *(const uint4 *)(row + first);
    } else {
        UNROLL for (int e = 0; e < EACH; e++) if (first + e < end) r.one[e] = row[first + e];
    }
    return r.all;
}
/* Copies a tile. The matrix has `rows` and `columns` from `from` on; beyond these the tile is
 * zero. */
template <bool WHOLE, int TILE_ROWS, int TILE_CHUNKS>
DEVICE void copy_tile(u8 *to, const ELEMENT *from, i64 pitch, int rows, int columns)
{
    constexpr int TURN = THREADS / TILE_CHUNKS; /* rows that the block copies at a time */
    int r0 = threadIdx.x / TILE_CHUNKS, c = threadIdx.x % TILE_CHUNKS;
    const ELEMENT *p = from + r0 * pitch;
    UNROLL for (int r = 0; r < TILE_ROWS; r += TURN)
        *(uint4 *)(to + swizzle<TILE_CHUNKS>(r0 + r, c)) =
            load_chunk<WHOLE>(p + r * pitch, c * EACH, r0 + r < rows ? columns : 0);
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
/* sum += one tile of A times one of B; a and b: the lane's addresses in the tiles */
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

__shared__ __align__(1024) u8 tile_a[ROWS * CHUNKS * 16], tile_b[B_ROWS * B_CHUNKS * 16];

template <bool WHOLE>
DEVICE void multiply_tiles(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    i64 row = (i64)blockIdx.y * ROWS, column = (i64)blockIdx.x * COLUMNS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int down = warp / 4 * 64, across = warp % 4 * 32; /* the 64 x 32 sums of this warp */
    u32 in_a = shared_address(tile_a) + lane_in_a(lane, down);
    u32 in_b = shared_address(tile_b) + lane_in_b(lane, across);
    float sum[4][4][4] = {}; /* 16 x 8 each */

    for (i64 at = 0; at < k; at += K) {
        copy_tile<WHOLE, ROWS, CHUNKS>(tile_a, a + row * k + at, k, m - row, k - at);
        if (TENSOR_FLOAT)
            copy_tile<WHOLE, B_ROWS, B_CHUNKS>(tile_b, b + column * k + at, k, n - column, k - at);
        else
            copy_tile<WHOLE, B_ROWS, B_CHUNKS>(tile_b, b + at * n + column, n, k - at, n - column);
        __syncthreads();
        multiply_tile(sum, in_a, in_b);
        __syncthreads();
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
