/* 08_double_buffered.cu - copies and shared loads run ahead of the FMAs that need them.
 *
 * There are two buffers for the tiles: while one buffer is used, cp.async fills the other, without
 * registers and without waiting. The copy transposes A, since each thread chooses where its 4 bytes
 * go. Fragments (the 24 elements that a thread needs at one k) are double-buffered in registers. So
 * there is only one barrier for 8 steps of k, and no FMA waits for memory. Then 8 warps on a
 * multiprocessor suffice, and each thread may use 255 registers.
 *
 * Expect the speed of cuBLAS. The limit is that registers must deliver three operands for each FMA:
 * registers are in two banks, odd and even, and each bank delivers about one operand per clock. An
 * operand that the previous FMA used too costs nothing, so the FMAs of a row of sums go through the
 * columns to the right, and the FMAs of the next row go back to the left. load_shared_16 keeps the
 * compiler from moving loads up: then more registers would be in use, and the compiler could not
 * choose their banks well.
 *
 * Any shape works: rows and columns beyond the edge are computed from the rows and columns at the
 * edge and not stored. If k is not a multiple of 8, the first tile is the partial one, filled up
 * with zeros. */
#include "mma.cuh"

struct tiles {
    float a[8][128 + 4], b[8][256];
};
struct fragment { /* floats, at one k: */
    u32 a[4][4], b[2][4]; /* 4 times 4 rows, 16 apart; 2 times 4 columns, 32 apart */
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

    /* Thread t copies, from the next tile of A, column t % 8 of the rows t / 8 + 32 i and, from the
     * next tile of B, columns t % 128 + 128 j of the rows t / 128 + 2 i. */
    const float *from_a = a + row * k + t % 8, *from_b[2];
    UNROLL for (int j = 0; j < 2; j++)
        from_b[j] = b + t / 128 * n + column + min(t % 128 + 128 * j, columns - 1);
    u32 row_of_a[4];
    UNROLL for (int i = 0; i < 4; i++) row_of_a[i] = min(t / 8 + 32 * i, rows - 1) * (u32)k;
    auto copy = [&](int i, int depth) {
        bool inside = depth == 8 || t % 8 < depth;
        cp_async_4(shared_address(&next->a[t % 8][t / 8 + 32 * i]),
                   inside ? from_a + row_of_a[i] : a, inside ? 4 : 0);
        int s = t / 128 + 2 * i;
        inside = depth == 8 || s < depth;
        UNROLL for (int j = 0; j < 2; j++) {
            cp_async_4(shared_address(&next->b[s][t % 128 + 128 * j]), inside ? from_b[j] : b,
                       inside ? 4 : 0);
            from_b[j] += 2 * n;
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
        UNROLL for (int i = 0; i < 4; i++)
            load_shared_16(to.a[i], shared_address(&now->a[s][y + 16 * i]));
        UNROLL for (int j = 0; j < 2; j++)
            load_shared_16(to.b[j], shared_address(&now->b[s][x + 32 * j]));
    };
    float sum[16][8] = {};
    auto multiply_tile = [&](bool more) {
        UNROLL for (int s = 0; s < 8; s++) {
            if (s < 7) read(f[(s + 1) % 2], s + 1);
            if (s < 4 && more) copy(s, 8);
            UNROLL for (int i = 0; i < 16; i++)
                UNROLL for (int step = 0; step < 8; step++) {
                    int j = i % 2 ? 7 - step : step;
                    sum[i][j] += __uint_as_float(f[s % 2].a[i / 4][i % 4]) *
                                 __uint_as_float(f[s % 2].b[j / 4][j % 4]);
                }
        }
        if (!more) return;
        switch_buffers(8);
        read(f[0], 0);
    };
    UNROLL for (int i = 0; i < 4; i++) copy(i, depth);
    UNROLL for (int j = 0; j < 2; j++) from_b[j] += (depth - 8) * n;
    switch_buffers(depth);
    read(f[0], 0);
    for (; left > 1; left--) multiply_tile(true);
    multiply_tile(false);

    /* Stores 16 x 32 sums of a warp at a time through shared memory, so that neighboring lanes
     * store neighbors of C. */
    __syncthreads();
    float(*part)[32] = (float(*)[32])((float *)buffer + warp * (16 * 32));
    row += warp / 4 * 64, column += warp % 4 * 64 + lane;
    UNROLL for (int i = 0; i < 16; i += 4)
        UNROLL for (int j = 0; j < 8; j += 4) {
            UNROLL for (int e = 0; e < 4; e++) {
                const float *four = sum[i + e] + j;
                store(&part[y % 16 + e][x % 32], floats<4>{four[0], four[1], four[2], four[3]});
            }
            __syncwarp();
            float *to = c + (row + i * 4) * n + column + j * 8;
#pragma unroll 4
            for (int r = 0; r < 16; r++, to += n)
                if (row + i * 4 + r < m && column + j * 8 < n) *to = part[r][lane];
            __syncwarp();
        }
}
