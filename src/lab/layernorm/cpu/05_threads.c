/* 05_threads.c - each thread computes its share of the rows.
 *
 * Rows do not depend on each other; weights and biases are only read, so each core keeps its own
 * copy in L1. */
#include "lab/layernorm/cpu/row.h"

RUNG(layernorm_threads)
{
    int64_t columns = c->n[1], share = (c->n[0] + c->threads - 1) / c->threads;
    const float *weight = c->in[1];
#pragma omp parallel for num_threads(c->threads) schedule(static, 1)
    for (int t = 0; t < c->threads; t++) {
        int64_t last = (t + 1) * share < c->n[0] ? (t + 1) * share : c->n[0];
        for (int64_t i = t * share; i < last; i++)
            layernorm_row((float *)c->out + i * columns, (const float *)c->in[0] + i * columns,
                          weight, weight + columns, columns, true);
        vf_stream_end();
    }
}
