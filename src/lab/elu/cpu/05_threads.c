/* 05_threads.c - each thread computes its share.
 *
 * Elements do not depend on each other: each thread takes a piece of the tensor. Both the
 * arithmetic and the number of cache lines under way grow with the threads, until memory is the
 * limit. */
#include "lab/elu/cpu/elu.h"

RUNG(elu_threads)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], vectors = n / W;
    bool aligned = (uintptr_t)y % sizeof(vf) == 0;
#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < vectors; i++) {
            vf a = vf_elu(vf_load(x + i * W));
            if (aligned) vf_stream(y + i * W, a);
            if (!aligned) vf_store(y + i * W, a);
        }
        vf_stream_end();
    }
    if (vectors * W < n) elu_rest(y + vectors * W, x + vectors * W, n - vectors * W);
}
