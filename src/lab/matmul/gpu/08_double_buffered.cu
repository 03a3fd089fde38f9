/* 08_double_buffered.cu - copies and shared loads run ahead of the FMAs that need them.
 *
 * There are two buffers for the tiles: while one is used, cp.async fills the other, without
 * registers and without waiting, and A is transposed on the way, since each thread chooses where
 * its 4 bytes go. Fragments, the 24 elements that a thread needs at one k, are double-buffered as
 * well, in registers. So one barrier for 8 k is left, and nothing waits for memory. With that, 8
 * warps suffice, and each thread may use 255 registers. Expect the speed of cuBLAS: the limit is
 * the FMA units, and that registers must deliver three operands per FMA. Any shape works: rows and
 * columns outside are computed from those at the edge and not stored, and what k leaves over after
 * tiles of 8 is the first tile, whose rest is zero. */
#include "mma.cuh"

struct tiles {
    float a[8][128 + 4], b[8][256];
};
struct fragment {
    floats<4> a[4], b[2]; /* at one k: 4 times 4 rows, 16 apart; 2 times 4 columns, 32 apart */
};

KERNEL_MIN(256, 1) matmul(float *c, const float *a, const float *b, i64 m, i64 n, i64 k)
{
    __shared__ __align__(16) tiles buffer[2];
    tiles *now = &buffer[1], *next = &buffer[0];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int x = warp % 4 * 64 + (lane / 8 * 2 + lane % 2) * 4, y = warp / 4 * 64 + lane / 2 % 4 * 4;
    i64 row = (i64)blockIdx.y * 128, column = (i64)blockIdx.x * 256;
    int rows = (int)min(m - row, 128ll), columns = (int)min(n - column, 256ll);
    int left = (int)((k + 7) / 8), depth = (int)(k - (i64)(left - 1) * 8); /* of the first tile */

    /* Of the next tile, this thread copies column t % 8 of the rows t / 8 + 32 i of A, and column t
     * of the rows 2 i and 2 i + 1 of B. */
    const float *from_a = a + row * k + t % 8, *from_b = b + column + min(t, columns - 1);
    i64 row_of_a[4];
    UNROLL for (int i = 0; i < 4; i++) row_of_a[i] = min(t / 8 + 32 * i, rows - 1) * k;
    auto copy = [&](int i, int depth) {
        bool inside = depth == 8 || t % 8 < depth;
        cp_async_4(shared_address(&next->a[t % 8][t / 8 + 32 * i]),
                   inside ? from_a + row_of_a[i] : a, inside ? 4 : 0);
        UNROLL for (int s = 2 * i; s < 2 * i + 2; s++, from_b += n) {
            inside = s < depth;
            cp_async_4(shared_address(&next->b[s][t]), inside ? from_b : b, inside ? 4 : 0);
        }
    };
    auto switch_buffers = [&](int depth) {
        cp_async_commit();
        cp_async_wait<0>();
        __syncthreads();
        tiles *old = now;
        now = next, next = old;
        from_a += depth;
    };
    fragment f[2];
    auto read = [&](fragment &to, int s) {
        UNROLL for (int i = 0; i < 4; i++) to.a[i] = load<4>(&now->a[s][y + 16 * i]);
        UNROLL for (int j = 0; j < 2; j++) to.b[j] = load<4>(&now->b[s][x + 32 * j]);
    };
    float sum[16][8] = {};
    auto multiply_tile = [&](bool more) {
        UNROLL for (int s = 0; s < 8; s++) {
            if (s == 7 && more) switch_buffers(8);
            if (s < 7 || more) read(f[(s + 1) % 2], (s + 1) % 8);
            if (s < 4 && more) copy(s, 8);
            UNROLL for (int i = 0; i < 16; i++)
                UNROLL for (int j = 0; j < 8; j++)
                    sum[i][j] += f[s % 2].a[i / 4][i % 4] * f[s % 2].b[j / 4][j % 4];
        }
    };
    UNROLL for (int i = 0; i < 4; i++) copy(i, depth);
    from_b += (depth - 8) * n;
    switch_buffers(depth);
    read(f[0], 0);
    for (; left > 1; left--) multiply_tile(true);
    multiply_tile(false);
    c += (row + y) * n + column + x, rows -= y, columns -= x;
    UNROLL for (int i = 0; i < 16; i++)
        UNROLL for (int j = 0; j < 8; j += 4) {
            int r = i / 4 * 16 + i % 4, q = j / 4 * 32;
            floats<4> four = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
            if (n % 4 == 0 && r < rows && q < columns) store(c + r * n + q, four);
            UNROLL for (int e = 0; e < 4; e++)
                if (n % 4 != 0 && r < rows && q + e < columns) c[r * n + q + e] = four[e];
        }
}
