/* 05_threads.c - each thread adds its share.
 *
 * The sums of the threads are added at the end, in the order of the threads: the same bits in every
 * run with the same number of threads. */
#include "lab/reduce/cpu/sum.h"

enum { MOST = 256 };

RUNG(reduce_threads)
{
    const float *x = c->in[0];
    float part[MOST] = {0}, all = 0;
    int threads = c->threads < MOST ? c->threads : MOST;
    int64_t share = (c->n[0] + threads - 1) / threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; t++) {
        int64_t first = t * share, last = first + share < c->n[0] ? first + share : c->n[0];
        if (first < last) part[t] = sum_of(x + first, last - first);
    }
    for (int t = 0; t < threads; t++) all += part[t];
    *(float *)c->out = all;
}
