/* 03_ijk.c - the definition: one dot product after the other.
 *
 * The sum stays in a register, so C is written once and the loop has no store. The row of A is read
 * in order and stays in L1. But B is read down a column: a line of 64 bytes is loaded for each 4
 * bytes, often from L2 or L3. And each addition waits for the addition before, which takes about
 * four clock cycles, so this loop would be slow even with all data in L1. */
#include "lab/cpu.h"

RUNG(matmul_ijk)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++) {
                AS_WRITTEN;
                sum += a[i * k + p] * b[p * n + j];
            }
            out[i * n + j] = sum;
        }
}
