/* 01_branch.c - a branch on random data.
 *
 * An element goes through one chain of arithmetic if it is negative and through another if it is
 * not; both take equally long. A processor works on instructions far ahead of the oldest, so it
 * must guess which way a branch goes before it knows x. A pattern such as every second element it
 * learns; a random sign it guesses wrong half of the time, and then throws away what it has begun:
 * some 15 to 20 clock cycles, and the chains of later elements that could have run beside this. */
#include "lab/divergence/cpu/chains.h"

RUNG(divergence_branch)
{
    const float *x = c->in[0];
    float *y = c->out;
    for (int64_t i = 0; i < c->n[0]; i++) {
        if (x[i] < 0)
            y[i] = odd_chain(x[i]);
        else
            y[i] = even_chain(x[i]);
    }
}
