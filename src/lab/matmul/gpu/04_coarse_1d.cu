/* 04_coarse_1d.cu - each thread computes several elements of a column of C.
 *
 * The tiles stay 32 x 32, but a block has 32 x 32 / FACTOR threads: thread coarsening. A thread
 * reads an element of B once and uses it for FACTOR sums, which it keeps in registers (a register
 * tile). Without coarsening, each FMA of a warp needs 128 bytes of B from shared memory; now it
 * needs 128 / FACTOR bytes. The sums are also independent of each other, so a thread has FACTOR
 * FMAs under way instead of one. The traffic from L2 is as before. Each sum still needs its own
 * element of A, and a larger factor does not reduce these reads, so the gain from one factor to the
 * next shrinks. */
#include "device.cuh"

constexpr int ROWS = 32 / FACTOR; /* rows of threads in a block */

KERNEL(1024 / FACTOR) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    i64 row = (i64)blockIdx.y * 32 + y, column = (i64)blockIdx.x * 32 + x;
    float sum[FACTOR] = {};
    for (i64 first = 0; first < k; first += 32) {
        UNROLL for (int f = 0; f < FACTOR; f++) {
            int r = f * ROWS;
            bool in_a = row + r < m && first + x < k, in_b = first + y + r < k && column < n;
            tile_a[y + r][x] = in_a ? to_float(a[(row + r) * k + first + x]) : 0;
            tile_b[y + r][x] = in_b ? to_float(b[(first + y + r) * n + column]) : 0;
        }
        __syncthreads();
        UNROLL for (int i = 0; i < 32; i++) {
            float of_b = tile_b[i][x];
            UNROLL for (int f = 0; f < FACTOR; f++) sum[f] += tile_a[y + f * ROWS][i] * of_b;
        }
        __syncthreads();
    }
    UNROLL for (int f = 0; f < FACTOR; f++) {
        i64 r = row + f * ROWS;
        if (r < m && column < n) c[r * n + column] = to<ELEMENT>(sum[f]);
    }
}
