/* 11_threads.c - all threads share the packed panels.
 *
 * The threads first pack all of A and B together. Then each thread takes tasks (a block of rows of
 * A times a few panels of B) and computes them for all of k. No two threads write to the same tile
 * of C, and they wait for each other only once, after packing; a barrier for each block of B would
 * cost time whenever one thread is late. A free thread takes the next task (dynamic scheduling), so
 * that a core that other programs use does not delay the others. The packed copies take as much
 * memory as A and B. */
#include "lab/matmul/cpu/panels.h"

enum { CHUNK = 4 * COLUMNS }; /* columns of a task */

RUNG(matmul_threads)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    int64_t slab = ceil_div(k, ceil_div(k, DEEP)); /* k is split into equal parts <= DEEP */
    int64_t rows = round_up(m, TALL), columns = round_up(n, COLUMNS);
    float *of_b = c->scratch, *of_a = of_b + columns * k;
#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for collapse(2) schedule(static) nowait
        for (int64_t p = 0; p < k; p += slab)
            for (int64_t j = 0; j < n; j += COLUMNS) {
                int64_t deep = min_i64(slab, k - p);
                pack_b(of_b + columns * p + j * deep, b + p * n + j, n, n - j, deep);
            }
#pragma omp for collapse(2) schedule(static)
        for (int64_t p = 0; p < k; p += slab)
            for (int64_t i = 0; i < m; i += TALL) {
                int64_t deep = min_i64(slab, k - p);
                pack_a(of_a + rows * p + i * deep, a + i * k + p, k, m - i, deep);
            }
#pragma omp for collapse(2) schedule(dynamic)
        for (int64_t ib = 0; ib < m; ib += HIGH)
            for (int64_t jb = 0; jb < n; jb += CHUNK)
                for (int64_t p = 0; p < k; p += slab)
                    for (int64_t j = jb; j < jb + CHUNK && j < n; j += COLUMNS)
                        for (int64_t i = ib; i < ib + HIGH && i < m; i += TALL) {
                            int64_t deep = min_i64(slab, k - p);
                            micro_kernel(out + i * n + j, n, m - i, n - j,
                                         of_a + rows * p + i * deep, of_b + columns * p + j * deep,
                                         deep, p > 0);
                        }
    }
}
