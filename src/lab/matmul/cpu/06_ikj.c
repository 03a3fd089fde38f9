/* 06_ikj.c - along rows of B and C.
 *
 * The inner loop walks along a row of B and a row of C, so a cache line brings 16 floats that are
 * used one after the other. */
#include "lab/cpu.h"

RUNG(matmul_ikj)
{
    float *out = c->out;
    const float *a = c->in[0], *b = c->in[1];
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    for (int64_t i = 0; i < m * n; i++) out[i] = 0;
    for (int64_t i = 0; i < m; i++)
        for (int64_t x = 0; x < k; x++)
            for (int64_t j = 0; j < n; j++) {
                out[i * n + j] += a[i * k + x] * b[x * n + j];
                AS_WRITTEN;
            }
}
