/* 05_coarse_2d.cu - each thread computes 8 x 8 elements of C.
 *
 * In a register tile of 8 x 8, 8 elements of A and 8 of B from shared memory serve 64 FMAs, while a
 * register tile of 8 x 1 needs 9 elements for 8 FMAs. 256 threads compute a tile of 128 x 128 of C,
 * so each element that comes from L2 serves 128 FMAs instead of 32. The price is registers: 64
 * registers of a thread hold sums, so only 16 warps fit on a multiprocessor instead of 64. But the
 * 64 independent FMAs of a thread hide their own latency. The columns of a thread are 16 apart, so
 * that neighboring threads read neighboring words of shared memory, without bank conflicts. */
#include "device.cuh"

KERNEL_MIN(256, 2) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    __shared__ float tile_a[128][8], tile_b[8][128];
    int t = threadIdx.x, x = t % 16, y = t / 16;
    i64 row = (i64)blockIdx.y * 128, column = (i64)blockIdx.x * 128;
    int rows = (int)min(m - row, 128ll), columns = (int)min(n - column, 128ll);
    const ELEMENT *from_a = a + (row + t / 8) * k + t % 8;
    const ELEMENT *from_b = b + t / 128 * n + column + t % 128;
    float sum[8][8] = {};
    for (i64 left = k; left > 0; left -= 8, from_a += 8, from_b += 8 * n) {
        UNROLL for (int i = 0; i < 4; i++) { /* a warp loads 4 rows of 8 elements: whole sectors */
            bool inside = t / 8 + 32 * i < rows && t % 8 < left;
            tile_a[t / 8 + 32 * i][t % 8] = inside ? to_float(from_a[32 * i * k]) : 0;
        }
        UNROLL for (int i = 0; i < 4; i++) {
            bool inside = t / 128 + 2 * i < left && t % 128 < columns;
            tile_b[t / 128 + 2 * i][t % 128] = inside ? to_float(from_b[2 * i * n]) : 0;
        }
        __syncthreads();
        UNROLL for (int s = 0; s < 8; s++) {
            float of_a[8], of_b[8];
            UNROLL for (int i = 0; i < 8; i++) of_a[i] = tile_a[y + 16 * i][s];
            UNROLL for (int j = 0; j < 8; j++) of_b[j] = tile_b[s][x + 16 * j];
            UNROLL for (int i = 0; i < 8; i++)
                UNROLL for (int j = 0; j < 8; j++) sum[i][j] += of_a[i] * of_b[j];
        }
        __syncthreads();
    }
    c += (row + y) * n + column + x;
    UNROLL for (int i = 0; i < 8; i++, c += 16 * n)
        UNROLL for (int j = 0; j < 8; j++)
            if (y + 16 * i < rows && x + 16 * j < columns) c[16 * j] = to<ELEMENT>(sum[i][j]);
}
