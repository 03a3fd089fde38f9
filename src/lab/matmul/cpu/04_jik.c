/* 04_jik.c - dot products again, but column after column of C.
 *
 * All dot products with one column of B follow each other, so the column could stay in a cache. But
 * each number of the column is on its own line: 1024 rows take 64 KiB, more than most L1 caches
 * have. The inner loop is the same as before: expect little or no difference. */
#include "lab/cpu.h"

RUNG(matmul_jik)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++) {
                AS_WRITTEN;
                sum += a[i * k + p] * b[p * n + j];
            }
            out[i * n + j] = sum;
        }
}
