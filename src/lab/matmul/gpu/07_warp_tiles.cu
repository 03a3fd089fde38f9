/* 07_warp_tiles.cu - a warp computes 64 x 64 of C, a thread 16 x 8.
 *
 * If several threads of a warp read the same address of shared memory, the read counts once, so the
 * 32 threads should share as many elements as possible. Before, a warp had 16 rows and 128 columns:
 * 144 elements at each k for 2048 FMAs. Now its 4 x 8 threads have 64 rows and 64 columns: 128
 * elements for 4096 FMAs. A thread reads 24 elements with six accesses of 16 bytes for 128 FMAs.
 * Tiles are 16 deep, which halves the number of barriers. The price is registers again: with more
 * than 200 per thread, two blocks of four warps fit on a multiprocessor; one computes while the
 * other loads. */
#include "device.cuh"

KERNEL_MIN(128, 2) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    __shared__ __align__(16) float tile_a[16][128 + 4], tile_b[16][128];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    /* Neighboring lanes, or every second lane, read the same address; such reads are merged. */
    int x = warp % 2 * 64 + (lane / 8 * 2 + lane % 2) * 4, y = warp / 2 * 64 + lane / 2 % 4 * 4;
    i64 row = (i64)blockIdx.y * 128, column = (i64)blockIdx.x * 128;
    int rows = (int)min(m - row, 128ll), columns = (int)min(n - column, 128ll);
    a += row * k, b += column;
    bool wide = k % 4 == 0 && n % 4 == 0;
    int q = lane * 4; /* column in the tile of B that this lane loads */
    float sum[16][8] = {};
    for (i64 left = k; left > 0; left -= 16, a += 16, b += 16 * n) {
        int depth = (int)min(left, 16ll);
        if (wide) {
            floats<4> of_a[4] = {}, of_b[4] = {};
            UNROLL for (int i = 0; i < 4; i++) {
                int r = t / 2 + i % 2 * 64, s = t % 2 * 4 + i / 2 * 8, s_of_b = warp + 4 * i;
                if (r < rows && s < depth) of_a[i] = load<4>(a + r * k + s);
                if (s_of_b < depth && q < columns) of_b[i] = load<4>(b + s_of_b * n + q);
            }
            UNROLL for (int i = 0; i < 4; i++) {
                int r = t / 2 + i % 2 * 64, s = t % 2 * 4 + i / 2 * 8;
                UNROLL for (int e = 0; e < 4; e++) tile_a[s + e][r] = of_a[i][e];
                store(&tile_b[warp + 4 * i][q], of_b[i]);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < 16; i++) {
                int r = t / 16 + 8 * i, s = t % 16;
                tile_a[s][r] = r < rows && s < depth ? to_float(a[r * k + s]) : 0;
                tile_b[i][t] = i < depth && t < columns ? to_float(b[i * n + t]) : 0;
            }
        }
        __syncthreads();
        UNROLL for (int s = 0; s < 16; s++) {
            floats<4> of_a[4], of_b[2];
            UNROLL for (int i = 0; i < 4; i++) of_a[i] = load<4>(&tile_a[s][y + 16 * i]);
            UNROLL for (int j = 0; j < 2; j++) of_b[j] = load<4>(&tile_b[s][x + 32 * j]);
            UNROLL for (int i = 0; i < 16; i++)
                UNROLL for (int j = 0; j < 8; j++)
                    sum[i][j] += of_a[i / 4][i % 4] * of_b[j / 4][j % 4];
        }
        __syncthreads();
    }
    c += (row + y) * n + column + x, rows -= y, columns -= x;
    UNROLL for (int i = 0; i < 16; i++)
        UNROLL for (int j = 0; j < 8; j += 4) {
            int r = i / 4 * 16 + i % 4, q = j / 4 * 32;
            floats<4> four = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
            if (wide && r < rows && q < columns) store(c + r * n + q, four);
            UNROLL for (int e = 0; e < 4; e++)
                if (!wide && r < rows && q + e < columns) c[r * n + q + e] = to<ELEMENT>(four[e]);
        }
}
