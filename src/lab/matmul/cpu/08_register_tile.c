/* 08_register_tile.c - a tile of C in registers.
 *
 * 3 x 4 sums stay in registers for up to 384 steps of k. A step loads 3 numbers of A and 4 numbers
 * of B and does 12 multiplications with them: 7 loads instead of 24, and no store. 12 sums also
 * keep the adders busy: two adders with a latency of four cycles need 8 additions under way. 4 x 4
 * sums and their operands would need more than the 16 registers that most processors have. The
 * lines of B that four columns touch (24 KiB for 384 rows) should stay in L1 for the tiles to the
 * right, which use the rest of these lines. */
#include "lab/cpu.h"

enum { TALL = 3, WIDE = 4, DEEP = 384 };

INLINE void tile(int rows, int columns, float *out, int64_t n, const float *a, int64_t k,
                 const float *b, int64_t deep)
{
    float sum[TALL][WIDE] = {0};
    for (int64_t p = 0; p < deep; p++) {
        AS_WRITTEN;
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) sum[i][j] += a[i * k + p] * b[p * n + j];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            AS_WRITTEN;
            out[i * n + j] += sum[i][j];
        }
}

RUNG(matmul_register_tile)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t p = 0; p < k; p += DEEP) {
        int64_t deep = min_i64(DEEP, k - p);
        for (int64_t i = 0; i < m; i += TALL)
            for (int64_t j = 0; j < n; j += WIDE) {
                float *to = out + i * n + j;
                const float *x = a + i * k + p, *y = b + p * n + j;
                if (i + TALL <= m && j + WIDE <= n)
                    tile(TALL, WIDE, to, n, x, k, y, deep);
                else
                    for (int s = 0; s < TALL && i + s < m; s++)
                        for (int t = 0; t < WIDE && j + t < n; t++)
                            tile(1, 1, to + s * n + t, n, x + s * k, k, y + t, deep);
            }
    }
}
