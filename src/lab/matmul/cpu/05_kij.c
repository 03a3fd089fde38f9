/* 05_kij.c - the innermost loop runs along rows of B and C.
 *
 * One number of A times a row of B is added to a row of C. Every byte of a line is used, the
 * hardware prefetches the next lines, and the additions do not wait for each other, because each
 * goes to another element of C. The price: every multiplication loads and stores an element of C,
 * and all of C is read and written k times. */
#include "lab/cpu.h"

RUNG(matmul_kij)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < m; i++) {
            float x = a[i * k + p];
            for (int64_t j = 0; j < n; j++) {
                AS_WRITTEN;
                out[i * n + j] += x * b[p * n + j];
            }
        }
}
