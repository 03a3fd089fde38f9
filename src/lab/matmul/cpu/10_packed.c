/* 10_packed.c - packed panels of A and B: the structure of GotoBLAS and BLIS.
 *
 * Before blocks of A and B are used, they are copied in exactly the order in which the register
 * tile will read them (panels.h). Then all reads are in order, every byte of a line is used, lines
 * do not evict each other, and few pages are touched. A block of A stays in L2, a panel of B in L1,
 * the block of B in L3 (blocks.h). The time of the copies grows with the square of the size, the
 * time of the multiplications with its cube. Source: K. Goto and R. van de Geijn, "Anatomy of
 * high-performance matrix multiplication", 2008. */
#include "lab/matmul/cpu/panels.h"

RUNG(matmul_packed)
{
    const float *a = c->in[0], *b = c->in[1];
    float *out = c->out, *of_a = c->scratch, *of_b = of_a + HIGH * DEEP;
    int64_t m = c->n[0], n = c->n[1], k = c->n[2];
    int64_t slab = ceil_div(k, ceil_div(k, DEEP)); /* k is split into equal parts <= DEEP */
    for (int64_t jb = 0; jb < n; jb += BROAD)
        for (int64_t p = 0; p < k; p += slab) {
            int64_t right = min_i64(jb + BROAD, n), deep = min_i64(slab, k - p);
            for (int64_t j = jb; j < right; j += COLUMNS)
                pack_b(of_b + (j - jb) * deep, b + p * n + j, n, right - j, deep);
            for (int64_t ib = 0; ib < m; ib += HIGH) {
                int64_t below = min_i64(ib + HIGH, m);
                for (int64_t i = ib; i < below; i += TALL)
                    pack_a(of_a + (i - ib) * deep, a + i * k + p, k, below - i, deep);
                for (int64_t j = jb; j < right; j += COLUMNS)
                    for (int64_t i = ib; i < below; i += TALL)
                        micro_kernel(out + i * n + j, n, below - i, right - j,
                                     of_a + (i - ib) * deep, of_b + (j - jb) * deep, deep, p > 0);
            }
        }
}
