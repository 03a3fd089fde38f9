/* 01_branch.c - a branch on random data.
 *
 * An element goes through one chain of arithmetic if it is negative and through another if it is
 * not; both chains take equally long. A processor starts instructions far ahead of the oldest
 * unfinished instruction, so it must predict a branch before it knows x. It can learn a pattern
 * such as every second element, but it mispredicts half of the random signs. A misprediction
 * discards the work after the branch: it costs some 15 to 20 clock cycles and the overlap with the
 * chains of later elements. */
#include "lab/divergence/cpu/chains.h"

RUNG(divergence_branch)
{
    const float *x = c->in[0];
    float *y = c->out;
    for (int64_t i = 0; i < c->n[0]; i++) {
        if (x[i] < 0)
            y[i] = negative_chain(x[i]);
        else
            y[i] = positive_chain(x[i]);
    }
}
