/* 04_vectors.c - both chains for W elements at once, and a mask for each lane.
 *
 * The lanes of a vector are like the threads of a warp: one instruction for all of them. Where they
 * disagree, both sides are computed for all, and each lane takes its own. W elements for twice the
 * instructions of one: that is why compilers turn branches into masks when they make vectors. */
#include "lab/divergence/cpu/chains.h"

RUNG(divergence_vectors)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], i = 0;
    for (; i + W <= n; i += W) vf_store(y + i, chains(vf_load(x + i)));
    if (i < n) vf_store_part(y + i, chains(vf_load_part(x + i, n - i)), n - i);
}
