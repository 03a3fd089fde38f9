/* 03_mask.c - both chains are computed, and a mask chooses.
 *
 * A comparison gives a word of ones or zeros; two ANDs and an OR select one of two results without
 * a branch. Half of the arithmetic is useless, but the chains are independent of each other and of
 * the chains of the next elements, and a processor computes several chains at once. For chains of
 * some dozens of instructions this costs less than mispredictions; for long chains it costs twice
 * as much as sorting. */
#include "lab/divergence/cpu/chains.h"

INLINE float choose(bool first, float a, float b)
{
    uint32_t mask = -(uint32_t)first, of_a, of_b;
    memcpy(&of_a, &a, sizeof a);
    memcpy(&of_b, &b, sizeof b);
    of_a = (of_a & mask) | (of_b & ~mask);
    memcpy(&a, &of_a, sizeof a);
    return a;
}

RUNG(divergence_mask)
{
    const float *x = c->in[0];
    float *y = c->out;
    for (int64_t i = 0; i < c->n[0]; i++)
        y[i] = choose(x[i] < 0, negative_chain(x[i]), positive_chain(x[i]));
}
