/* 03_tiled.cu - tiles of 32 x 32 of A and B in shared memory.
 *
 * A block computes a tile of 32 x 32 of C. Each of its threads loads one element of a tile of A and
 * one element of a tile of B, and after a barrier each thread uses 32 elements of each tile. An
 * element that was loaded once serves 32 threads, so L2 delivers a 32nd of the operands of the
 * FMAs. Elements outside of A and B are zero, so that the inner loop needs no condition. The limit
 * is now shared memory: it delivers 128 bytes per clock to a multiprocessor, which are the 32
 * elements of B for one FMA of a warp, while the FMA units could do four of these FMAs per clock.
 * Reading the elements of A takes shared memory even more time. */
#include "device.cuh"

KERNEL(1024) matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, i64 m, i64 n, i64 k)
{
    __shared__ float tile_a[32][32], tile_b[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    i64 row = (i64)blockIdx.y * 32 + y, column = (i64)blockIdx.x * 32 + x;
    float sum = 0;
    for (i64 first = 0; first < k; first += 32) {
        bool in_a = row < m && first + x < k, in_b = first + y < k && column < n;
        tile_a[y][x] = in_a ? to_float(a[row * k + first + x]) : 0;
        tile_b[y][x] = in_b ? to_float(b[(first + y) * n + column]) : 0;
        __syncthreads();
        UNROLL for (int i = 0; i < 32; i++) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads(); /* before the tiles are overwritten */
    }
    if (row < m && column < n) c[row * n + column] = to<ELEMENT>(sum);
}
