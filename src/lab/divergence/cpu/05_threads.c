/* 05_threads.c - each thread computes its share of the vectors.
 *
 * Whatever a branch costs, it costs each core for itself: cores have instruction streams of their
 * own and never wait for each other's branches. */
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
