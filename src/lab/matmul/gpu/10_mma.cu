/* 10_mma.cu - tensor cores: a warp multiplies 16 x 16 by 16 x 8 with one instruction (mma.sync).
 *
 * The 32 threads of a warp hold the operands of an mma.sync together: 16 x 16 bf16 of A in four
 * registers of each thread, 16 x 8 of B in two, the sums in four floats. One instruction does 4096
 * operations; an FMA of a warp does 64. Arithmetic costs little now; loading its operands is the
 * cost. A register takes two elements that follow each other along k. In A they are neighbors in
 * memory; in B (k,n) they are in two rows, which the block interleaves while it fills the tile. In
 * tf32 a register has one element, an mma takes 8 elements along k, and B is (n,k), so B is read
 * like A. The tiles are plain arrays of 32-bit words. Lane 4g + q reads word q of row g; rows are
 * 16 or 128 words apart, so the lanes of a warp use only 8 of the 32 banks, and each load takes
 * four times as long. Besides, a block never loads and multiplies at the same time. Expect an
 * eighth of cuBLASLt's speed, which is still more than CUDA cores reach in float. */
#include "mma.cuh"

constexpr bool TENSOR_FLOAT = sizeof(ELEMENT) == 4; /* tf32: B is (n,k); bf16: B is (k,n) */
constexpr int EACH = 16 / sizeof(ELEMENT);          /* elements of a chunk of 16 bytes */
constexpr int ROWS = 128, COLUMNS = 128, THREADS = 256;
constexpr int WORDS = 16, K = WORDS * 4 / sizeof(ELEMENT); /* words, elements along k in a tile */

union chunk {
    uint4 all;
    u32 word[4];
    ELEMENT one[EACH];
};

/* The chunk at `first` of a row that ends at `end`; elements beyond the end are zero. WHOLE: the
 * chunk's address is a multiple of 16 bytes, and the chunk does not cross the end. */
template <bool WHOLE>
DEVICE chunk load_chunk(const ELEMENT *row, int first, int end)
{
    chunk r;
    r.all = make_uint4(0, 0, 0, 0);
    if constexpr (WHOLE) {
        if (first < end) r.all = *(const uint4 *)(row + first);
    } else {
        UNROLL for (int e = 0; e < EACH; e++) if (first + e < end) r.one[e] = row[first + e];
    }
    return r;
}
/* Fills a tile with the words of 128 rows. The matrix has `rows` and `columns` from `from` on;
 * beyond them the tile is zero. */
template <bool WHOLE>
DEVICE void load_rows(u32 (*tile)[WORDS], const ELEMENT *from, i64 pitch, int rows, int columns)
{
    int r0 = threadIdx.x / 4, c = threadIdx.x % 4;
    const ELEMENT *p = from + r0 * pitch;
    UNROLL for (int r = 0; r < ROWS; r += THREADS / 4)
        *(uint4 *)&tile[r0 + r][4 * c] =
            load_chunk<WHOLE>(p + r * pitch, c * EACH, r0 + r < rows ? columns : 0).all;
}
/* Fills a tile of B (k,n) in bf16: word [w][column] has the elements of rows 2w and 2w + 1. */
template <bool WHOLE>
DEVICE void load_pairs(u32 (*tile)[COLUMNS], const ELEMENT *from, i64 pitch, int rows, int columns)
{
    int w = threadIdx.x / 16, first = threadIdx.x % 16 * 8;
    const ELEMENT *p = from + 2 * w * pitch;
    chunk even = load_chunk<WHOLE>(p, first, 2 * w < rows ? columns : 0);
    chunk odd = load_chunk<WHOLE>(p + pitch, first, 2 * w + 1 < rows ? columns : 0);
    UNROLL for (int i = 0; i < 4; i++) {
        tile[w][first + 2 * i] = prmt(even.word[i], odd.word[i], 0x5410);     /* lower halves */
        tile[w][first + 2 * i + 1] = prmt(even.word[i], odd.word[i], 0x7632); /* upper halves */
    }
}
DEVICE void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    if constexpr (TENSOR_FLOAT)
        mma_m16n8k8_tf32(sum, a, b0, b1);
    else
        mma_m16n8k16(sum, a, b0, b1);
}
/* Rounds to tf32, since mma would truncate; a pair of bf16 is returned unchanged. */
DEVICE u32 rounded(u32 a)
{
    return TENSOR_FLOAT ? cvt_tf32(__uint_as_float(a)) : a;
}
/* Stores two neighbors in a row of C, the first at an even column. */
DEVICE void store_two(ELEMENT *row, i64 column, i64 n, float x, float y)
{
    if (n % 2 == 0 && column < n) store<2>(row + column, floats<2>{{x, y}});
    if (n % 2 && column < n) row[column] = to<ELEMENT>(x);
    if (n % 2 && column + 1 < n) row[column + 1] = to<ELEMENT>(y);
}

__shared__ __align__(16) u32 tile_a[ROWS][WORDS], tile_b[COLUMNS * WORDS];

template <bool WHOLE>
DEVICE void multiply_tiles(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    auto by_rows = (u32(*)[WORDS])tile_b;    /* tf32: [column][word] */
    auto by_pairs = (u32(*)[COLUMNS])tile_b; /* bf16: [word][column] */
    i64 row = (i64)blockIdx.y * ROWS, column = (i64)blockIdx.x * COLUMNS;
    int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4, warp = threadIdx.x / 32;
    int down = warp / 4 * 64, across = warp % 4 * 32; /* the 64 x 32 sums of this warp */
    float sum[4][4][4] = {};                          /* 16 x 8 each */

    for (i64 at = 0; at < k; at += K) {
        load_rows<WHOLE>(tile_a, a + row * k + at, k, m - row, k - at);
        if (TENSOR_FLOAT)
            load_rows<WHOLE>(by_rows, b + column * k + at, k, n - column, k - at);
        else
            load_pairs<WHOLE>(by_pairs, b + at * n + column, n, k - at, n - column);
        __syncthreads();
        UNROLL for (int w = 0; w < WORDS; w += 8) {
            u32 left[4][4], right[4][2];
            UNROLL for (int i = 0; i < 4; i++)
                UNROLL for (int h = 0; h < 4; h++) /* rows g, g + 8 of words q; of words q + 4 */
                    left[i][h] = rounded(tile_a[down + 16 * i + h % 2 * 8 + g][w + h / 2 * 4 + q]);
            UNROLL for (int j = 0; j < 4; j++)
                UNROLL for (int h = 0; h < 2; h++) { /* words q, q + 4 of column g */
                    int n0 = across + 8 * j + g, w0 = w + 4 * h + q;
                    right[j][h] = rounded(TENSOR_FLOAT ? by_rows[n0][w0] : by_pairs[w0][n0]);
                }
            UNROLL for (int i = 0; i < 4; i++)
                UNROLL for (int j = 0; j < 4; j++)
                    multiply(sum[i][j], left[i], right[j][0], right[j][1]);
        }
        __syncthreads();
    }
    UNROLL for (int i = 0; i < 8; i++) { /* sums 0, 1 are in row g, 2, 3 in row g + 8 */
        i64 r = row + down + 8 * i + g;
        UNROLL for (int j = 0; j < 4; j++)
            if (r < m)
                store_two(c + r * n, column + across + 8 * j + 2 * q, n,
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
