/* 04_vectors.c - both chains for W elements at once, and a mask for each lane.
 *
 * The lanes of a vector are like the threads of a warp: one instruction works on all of them. All
 * lanes compute both chains, and each lane selects its result. The instructions of two chains
 * compute W elements, so compilers turn branches into masks when they vectorize. */
#include "lab/divergence/cpu/chains.h"

RUNG(divergence_vectors)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], i = 0;
    for (; i + W <= n; i += W) vf_store(y + i, chains(vf_load(x + i)));
    if (i < n) vf_store_part(y + i, chains(vf_load_part(x + i, n - i)), n - i);
}
