/* 04_vectors.c - eight vectors of sums.
 *
 * A core has two adders, and an addition takes four cycles, so eight independent additions keep the
 * adders busy. For data in a cache the core can do no better. For data in memory eight vectors may
 * gain nothing over one, because one vector of sums may already be faster than memory. */
#include "lab/reduce/cpu/sum.h"

RUNG(reduce_vectors)
{
    *(float *)c->out = sum_of(c->in[0], c->n[0]);
}
