/* 05_threads.c - each thread computes its share of the rows.
 *
 * Rows do not depend on each other. Every thread has its own buffer, which begins at a cache line,
 * so no line is shared between cores. */
#include "lab/softmax/cpu/row.h"

RUNG(softmax_threads)
{
    enum { LINE = 16 }; /* floats */
    int64_t columns = c->n[1], share = (c->n[0] + c->threads - 1) / c->threads;
    int64_t padded = (columns + LINE - 1) / LINE * LINE;
#pragma omp parallel for num_threads(c->threads) schedule(static, 1)
    for (int t = 0; t < c->threads; t++) {
        int64_t last = (t + 1) * share < c->n[0] ? (t + 1) * share : c->n[0];
        for (int64_t i = t * share; i < last; i++)
            softmax_row_streamed((float *)c->out + i * columns,
                                 (const float *)c->in[0] + i * columns, columns,
                                 (float *)c->scratch + t * padded);
        vf_stream_end();
    }
}
