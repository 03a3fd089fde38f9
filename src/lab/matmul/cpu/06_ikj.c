/* 06_ikj.c - rows again, and the row of C stays in L1.
 *
 * All k updates of one row of C follow each other, so the row (4 KiB for 1024 columns) stays in L1.
 * B is read once for each row of C. This is the best of the six loop orders. Each multiplication
 * still costs two loads and a store, and a core can store only once or twice in a clock cycle. The
 * limit is now the number of loads and stores, not memory. */
#include "lab/cpu.h"

RUNG(matmul_ikj)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            float x = a[i * k + p];
            for (int64_t j = 0; j < n; j++) {
                AS_WRITTEN;
                out[i * n + j] += x * b[p * n + j];
            }
        }
}
