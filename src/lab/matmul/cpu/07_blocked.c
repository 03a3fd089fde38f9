/* 07_blocked.c - blocks that stay in the caches.
 *
 * The matrices are cut into blocks, and a block is used as often as possible before the next block
 * is loaded. 4 KiB of a row of B and 4 KiB of a row of C are in L1. A block of 64 rows of B, 256
 * KiB, stays in L2 while 1024 rows of A use it. A block of C of 4 MiB stays in L3 while k advances.
 * Memory then moves little: each block of B once for 1024 rows of C. The gain is large if the
 * caches below L1 cannot keep up. The gain is small if this loop, with its two loads and a store
 * for each multiplication, is so slow that the prefetcher always has the next line ready. */
#include "lab/cpu.h"

enum { L1_COLUMNS = 1024, L2_ROWS = 64, L3_ROWS = 1024 };

RUNG(matmul_blocked)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    memset(out, 0, sizeof *out * (size_t)(m * n));
    for (int64_t ib = 0; ib < m; ib += L3_ROWS)
        for (int64_t jb = 0; jb < n; jb += L1_COLUMNS)
            for (int64_t pb = 0; pb < k; pb += L2_ROWS) {
                int64_t i_end = min_i64(ib + L3_ROWS, m), p_end = min_i64(pb + L2_ROWS, k);
                int64_t j_end = min_i64(jb + L1_COLUMNS, n);
                for (int64_t i = ib; i < i_end; i++)
                    for (int64_t p = pb; p < p_end; p++) {
                        float x = a[i * k + p];
                        for (int64_t j = jb; j < j_end; j++) {
                            AS_WRITTEN;
                            out[i * n + j] += x * b[p * n + j];
                        }
                    }
            }
}
