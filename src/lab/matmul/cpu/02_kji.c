/* 02_kji.c - columns of A and C again, but all columns of C for each of A.
 *
 * A column of A is now used for all columns of C before the next column of A, so it could stay in a
 * cache; but all of C is read and written once for every column of A. The innermost loop is the
 * same as before, and the time is about the same, because the data that the innermost loop touches
 * decides the time. */
#include "lab/cpu.h"

RUNG(matmul_kji)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < n; j++) {
            float x = b[p * n + j];
            for (int64_t i = 0; i < m; i++) {
                AS_WRITTEN;
                out[i * n + j] += a[i * k + p] * x;
            }
        }
}
