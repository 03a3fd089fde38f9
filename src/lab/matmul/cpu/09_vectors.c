/* 09_vectors.c - the register tile in vectors.
 *
 * The same idea with W sums in each register (tile.h): 14 x 32 sums with AVX-512, 6 x 16 with AVX2.
 * A step of k loads two vectors of B and, for each row, one number of A, which is copied to all
 * lanes. With 14 x 32 sums, 16 loads feed 28 FMAs, and loads are no longer the limit. The remaining
 * problem is to keep data in L1. Neighboring rows of a tile are a whole row of the matrix apart.
 * If this distance is a power of two, the lines of these rows compete for the same few places of L1
 * and evict each other before all their bytes are used; and if rows are long, each step of k needs
 * another page of B. */
#include "lab/matmul/cpu/tile.h"

INLINE void tile(int tall, int wide, float *out, int64_t n, const float *a, int64_t k,
                 const float *b, int64_t deep)
{
    vf sum[TALL][WIDE] = {0};
    tile_multiply(sum, tall, wide, a, k, 1, b, n, deep);
    for (int i = 0; i < tall; i++)
        for (int v = 0; v < wide; v++) {
            float *to = out + i * n + v * W;
            vf_store(to, vf_load(to) + sum[i][v]);
        }
}

RUNG(matmul_vectors)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2], whole = n - n % COLUMNS;
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t p = 0; p < k; p += DEEP) {
        int64_t deep = min_i64(DEEP, k - p);
        for (int64_t j = 0; j < whole; j += COLUMNS) {
            int64_t i = 0;
            for (; i + TALL <= m; i += TALL)
                tile(TALL, WIDE, out + i * n + j, n, a + i * k + p, k, b + p * n + j, deep);
            for (; i < m; i++)
                tile(1, WIDE, out + i * n + j, n, a + i * k + p, k, b + p * n + j, deep);
        }
        for (int64_t i = 0; i < m; i++)
            for (int64_t q = p; q < p + deep; q++)
                for (int64_t j = whole; j < n; j++) out[i * n + j] += a[i * k + q] * b[q * n + j];
    }
}
