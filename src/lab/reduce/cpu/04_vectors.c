/* 04_vectors.c - eight vectors of sums.
 *
 * Two adders, each with an addition under way in every one of its four cycles: eight vectors keep
 * them busy. For data in a cache this is the limit of the core. For data in memory it is not
 * needed: memory is slower, and the loop above may already be waiting for it. */
#include "lab/reduce/cpu/sum.h"

RUNG(reduce_vectors)
{
    *(float *)c->out = sum_of(c->in[0], c->n[0]);
}
