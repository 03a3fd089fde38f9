/* 06_threads.c - each thread copies its share.
 *
 * One core can wait for a few dozen cache lines at once, including prefetched lines, and each line
 * takes almost 100 ns to come. This limits a core to 10 to 30 GB/s, less than most memories can
 * deliver. Several cores wait for more lines at once. With enough cores the memory itself is the
 * limit, and more cores do not help. */
#include "lab/cpu.h"

RUNG(copy_threads)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t vectors = c->n[0] / W;
    bool aligned = (uintptr_t)to % sizeof(vf) == 0;
#pragma omp parallel num_threads(c->threads)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < vectors; i++) {
            vf a = vf_load(from + i * W);
            if (aligned) vf_stream(to + i * W, a);
            if (!aligned) vf_store(to + i * W, a);
        }
        vf_stream_end();
    }
    for (int64_t i = vectors * W; i < c->n[0]; i++) to[i] = from[i];
}
