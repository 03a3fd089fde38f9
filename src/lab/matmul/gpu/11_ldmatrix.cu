/* 11_ldmatrix.cu - ldmatrix: four 8 x 8 blocks per load, and a swizzled tile without conflicts.
 *
 * The operands of mma.sync lie scattered over the lanes of a warp. ldmatrix fetches them from
 * shared memory as the tensor cores want them: each lane gives the address of 16 bytes, a row of an
 * 8 x 8 block of bf16, and one instruction fills four registers of all lanes. It replaces four
 * 32-bit loads, and its transposed form reads B (k,n), whose pairs of elements down a column lie in
 * two rows. Shared memory delivers 128 bytes per cycle if the 8 rows of a block are in different
 * banks. In a plain tile they are 64 or 256 bytes apart: up to 8 of them meet in the same banks. So
 * the chunks of 16 bytes of a row change places: swizzle() XORs their number with that of the row.
 * Neither change helps alone; expect one and a half times the speed of `mma` from both.
 * In tf32 an element is a pair of bf16 to ldmatrix, and B is (n,k), as there is no transposition. */
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

/* The chunk at `first` of a row that ends at `end`; zeros from there on. `whole`: its address is a
 * multiple of 16 bytes, and it does not cross the end. */
DEVICE uint4 load_chunk(const ELEMENT *row, i64 first, i64 end, bool whole)
{
    chunk r;
    r.all = make_uint4(0, 0, 0, 0);
    if (whole) {
        if (first < end) r.all = *(const uint4 *)(row + first);
    } else {
        UNROLL for (int e = 0; e < EACH; e++) if (first + e < end) r.one[e] = row[first + e];
    }
    return r.all;
}
/* Copies the tile at (row, column) of a matrix (rows, columns) to shared memory. */
template <int TILE_ROWS, int TILE_CHUNKS>
DEVICE void copy_tile(u8 *to, const ELEMENT *from, i64 rows, i64 columns, i64 row, i64 column,
                      bool whole)
{
    UNROLL for (int t = 0; t < TILE_ROWS * TILE_CHUNKS; t += THREADS) {
        int i = t + threadIdx.x, r = i / TILE_CHUNKS, c = i % TILE_CHUNKS;
        *(uint4 *)(to + swizzle<TILE_CHUNKS>(r, c)) =
            load_chunk(from + (row + r) * columns, column + c * EACH,
                       row + r < rows ? columns : 0, whole);
    }
}
/* Rounds to tf32, since mma would truncate; two bf16 stay as they are. */
DEVICE void round(u32 (&r)[4])
{
    if constexpr (TENSOR_FLOAT)
        UNROLL for (int i = 0; i < 4; i++) r[i] = cvt_rna_tf32(__uint_as_float(r[i]));
}
DEVICE void multiply(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    if constexpr (TENSOR_FLOAT)
        mma_m16n8k8_tf32(sum, a, b0, b1);
    else
        mma_m16n8k16(sum, a, b0, b1);
}
/* Two neighbours in a row of C, at an even column. */
DEVICE void store_two(ELEMENT *row, i64 column, i64 n, float x, float y)
{
    if (n % 2 == 0 && column < n) store<2>(row + column, floats<2>{{x, y}});
    if (n % 2 && column < n) row[column] = to<ELEMENT>(x);
    if (n % 2 && column + 1 < n) row[column + 1] = to<ELEMENT>(y);
}

KERNEL(THREADS) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    __shared__ __align__(128) u8 tile_a[ROWS * CHUNKS * 16], tile_b[B_ROWS * B_CHUNKS * 16];
    bool whole = k % EACH == 0 && n % EACH == 0;
    i64 row = (i64)blockIdx.y * ROWS, column = (i64)blockIdx.x * COLUMNS;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int down = warp / 4 * 64, across = warp % 4 * 32; /* the 64 x 32 sums of this warp */
    float sum[4][4][4] = {};                          /* 16 x 8 each */

    for (i64 at = 0; at < k; at += K) {
        copy_tile<ROWS, CHUNKS>(tile_a, a, m, k, row, at, whole);
        if (TENSOR_FLOAT)
            copy_tile<B_ROWS, B_CHUNKS>(tile_b, b, n, k, column, at, whole);
        else
            copy_tile<B_ROWS, B_CHUNKS>(tile_b, b, k, n, at, column, whole);
        __syncthreads();
        UNROLL for (int step = 0; step < CHUNKS / 2; step++) { /* 16 bf16 or 8 tf32 of k */
            u32 left[4][4], right[2][4], from = shared_address(tile_b);
            UNROLL for (int i = 0; i < 4; i++) {
                int r = down + 16 * i + lane % 16, chunk = 2 * step + lane / 16;
                ldmatrix_x4(left[i], shared_address(tile_a) + swizzle<CHUNKS>(r, chunk));
                round(left[i]);
            }
            UNROLL for (int j = 0; j < 2; j++) {
                int n0 = across + 16 * j, high = lane / 16, k0 = lane / 8 % 2;
                if (TENSOR_FLOAT)
                    ldmatrix_x4(right[j], from + swizzle<B_CHUNKS>(n0 + 8 * high + lane % 8,
                                                                   2 * step + k0));
                else
                    ldmatrix_x4_trans(right[j], from + swizzle<B_CHUNKS>(16 * step + lane % 16,
                                                                         n0 / 8 + high));
                round(right[j]);
            }
            UNROLL for (int i = 0; i < 4; i++)
                UNROLL for (int j = 0; j < 4; j++)
                    multiply(sum[i][j], left[i], right[j / 2][j % 2 * 2],
                             right[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
    }
    UNROLL for (int i = 0; i < 8; i++) {
        i64 r = row + down + 8 * i + lane / 4;
        UNROLL for (int j = 0; j < 4; j++)
            if (r < m)
                store_two(c + r * n, column + across + 8 * j + lane % 4 * 2, n,
                          sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
    }
}
