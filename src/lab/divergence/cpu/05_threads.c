/* 05_threads.c - each thread computes its share of the vectors.
 *
 * Each core has its own instruction stream, so a core never waits for the branches of another. */
#include "lab/divergence/cpu/chains.h"

RUNG(divergence_threads)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], vectors = n / W, i = vectors * W;
#pragma omp parallel for num_threads(c->threads) schedule(static)
    for (int64_t k = 0; k < vectors; k++) vf_store(y + k * W, chains(vf_load(x + k * W)));
    if (i < n) vf_store_part(y + i, chains(vf_load_part(x + i, n - i)), n - i);
}
