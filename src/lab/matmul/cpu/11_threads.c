/* 11_threads.c - all threads share the packed panels.
 *
 * The threads pack A and B together, wait for each other, and then take tasks: a block of rows
 * times a few panels of B. All panels are in L3, and each core reads what its tasks need into its
 * own L2 and L1. No two tasks write to the same tile of C. Tasks are taken as threads become free
 * (dynamic), since a core that other programs use would keep all others waiting. There should be
 * several tasks for each thread, or most threads would wait for the last one. */
#include "lab/matmul/cpu/panels.h"

enum { CHUNK = 4 * COLUMNS }; /* of a task */

RUNG(matmul_threads)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    int64_t slab = ceil_div(k, ceil_div(k, DEEP)); /* of k: equal parts of at most DEEP */
    float *of_b = c->scratch, *of_a = of_b + (min_i64(n, BROAD) + COLUMNS) * DEEP;
#pragma omp parallel num_threads(c->threads)
    for (int64_t jb = 0; jb < n; jb += BROAD)
        for (int64_t p = 0; p < k; p += slab) {
            int64_t right = min_i64(jb + BROAD, n), deep = min_i64(slab, k - p);
#pragma omp for schedule(static) nowait
            for (int64_t j = jb; j < right; j += COLUMNS)
                pack_b(of_b + (j - jb) * deep, b + p * n + j, n, right - j, deep);
#pragma omp for schedule(static)
            for (int64_t i = 0; i < m; i += TALL)
                pack_a(of_a + i * deep, a + i * k + p, k, m - i, deep);
#pragma omp for collapse(2) schedule(dynamic)
            for (int64_t ib = 0; ib < m; ib += HIGH)
                for (int64_t jc = jb; jc < right; jc += CHUNK)
                    for (int64_t j = jc; j < jc + CHUNK && j < right; j += COLUMNS)
                        for (int64_t i = ib; i < ib + HIGH && i < m; i += TALL)
                            micro_kernel(out + i * n + j, n, m - i, right - j, of_a + i * deep,
                                         of_b + (j - jb) * deep, deep, p > 0);
        }
}
