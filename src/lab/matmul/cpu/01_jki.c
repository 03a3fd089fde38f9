/* 01_jki.c - the innermost loop walks down columns of A and C.
 *
 * Both matrices are stored by rows, so the next number of a column is a whole row away: on another
 * cache line, and with 1024 columns on another page. Each step loads two lines of 64 bytes, uses 4
 * bytes of each and writes one line back. The lines of a column do not stay in L1 until the next
 * column is needed. A row length that is a power of two is far worse: a cache line can only be
 * stored in the few places of its set, and then all lines of a column belong to the same few sets.
 * Compare --size=500x500x500 with 512x512x512. In Fortran, which stores matrices by columns, this
 * is the best order. */
#include "lab/cpu.h"

RUNG(matmul_jki)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++) {
            float x = b[p * n + j];
            for (int64_t i = 0; i < m; i++) {
                AS_WRITTEN;
                out[i * n + j] += a[i * k + p] * x;
            }
        }
}
