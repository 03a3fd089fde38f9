/* 02_sorted.c - the indices are sorted first; then two loops without a branch.
 *
 * The first loop writes every index to the end of both lists and then lengthens only one of them.
 * This takes an addition instead of a branch, so nothing is predicted. Then each chain has a list
 * of its own. The lists cost memory, and successive elements are no longer neighbors, but chains
 * of different elements overlap without interruption. Both lists share one array and grow from its
 * two ends. */
#include "lab/divergence/cpu/chains.h"

RUNG(divergence_sorted)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], negative = 0, *index = c->scratch;
    for (int64_t i = 0; i < n; i++) {
        AS_WRITTEN;
        index[negative] = index[n - 1 - (i - negative)] = i;
        negative += x[i] < 0;
    }
    for (int64_t k = 0; k < negative; k++) y[index[k]] = negative_chain(x[index[k]]);
    for (int64_t k = negative; k < n; k++) y[index[k]] = positive_chain(x[index[k]]);
}
