/* 06_vectorized.cu - four elements per access, of memory and of shared memory.
 *
 * In addition to 512 FMAs for each tile, a thread of the rung before executes about 180 other
 * instructions, half of them loads and stores of 4 bytes. An access of 16 bytes replaces four
 * accesses of 4 bytes if the elements that a thread needs are neighbors. So the columns of a
 * thread are two groups of four, 64 apart, and the tile of A is transposed when it is written to
 * shared memory, so that four rows at one k are 16 neighboring bytes. The rows of this tile are
 * 132 words apart and not 128; otherwise the threads of a warp, which hold two groups of four k,
 * would store to the same banks. If rows of A or B are not multiples of four elements long, all
 * elements are loaded one at a time. */
#include "device.cuh"

KERNEL_MIN(256, 2) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    __shared__ __align__(16) float tile_a[8][128 + 4], tile_b[8][128];
    int t = threadIdx.x, x = t % 16 * 4, y = t / 16 * 4;
    i64 row = (i64)blockIdx.y * 128, column = (i64)blockIdx.x * 128;
    int rows = (int)min(m - row, 128ll), columns = (int)min(n - column, 128ll);
    a += row * k, b += column;
    bool wide = k % 4 == 0 && n % 4 == 0;
    float sum[8][8] = {};
    for (i64 left = k; left > 0; left -= 8, a += 8, b += 8 * n) {
        int depth = (int)min(left, 8ll);
        if (wide) {
            int r = t / 2, s = t % 2 * 4, s_of_b = t / 32, q = t % 32 * 4;
            floats<4> of_a = {}, of_b = {};
            if (r < rows && s < depth) of_a = load<4>(a + r * k + s);
            if (s_of_b < depth && q < columns) of_b = load<4>(b + s_of_b * n + q);
            UNROLL for (int e = 0; e < 4; e++) tile_a[s + e][r] = of_a[e];
            store(&tile_b[s_of_b][q], of_b);
        } else {
            int r = t / 8, s = t % 8, s_of_b = t / 128, q = t % 128;
#pragma unroll 1
            for (int i = 0; i < 4; i++, r += 32, s_of_b += 2) {
                tile_a[s][r] = r < rows && s < depth ? to_float(a[r * k + s]) : 0;
                tile_b[s_of_b][q] = s_of_b < depth && q < columns ? to_float(b[s_of_b * n + q]) : 0;
            }
        }
        __syncthreads();
        UNROLL for (int s = 0; s < 8; s++) {
            floats<4> of_a[2], of_b[2];
            UNROLL for (int i = 0; i < 2; i++) of_a[i] = load<4>(&tile_a[s][y + 64 * i]);
            UNROLL for (int j = 0; j < 2; j++) of_b[j] = load<4>(&tile_b[s][x + 64 * j]);
            UNROLL for (int i = 0; i < 8; i++)
                UNROLL for (int j = 0; j < 8; j++)
                    sum[i][j] += of_a[i / 4][i % 4] * of_b[j / 4][j % 4];
        }
        __syncthreads();
    }
    c += (row + y) * n + column + x, rows -= y, columns -= x;
    UNROLL for (int i = 0; i < 8; i++)
        UNROLL for (int j = 0; j < 8; j += 4) {
            int r = i / 4 * 64 + i % 4, q = j / 4 * 64;
            floats<4> four = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
            if (wide && r < rows && q < columns) store(c + r * n + q, four);
            UNROLL for (int e = 0; e < 4; e++)
                if (!wide && r < rows && q + e < columns) c[r * n + q + e] = to<ELEMENT>(four[e]);
        }
}
