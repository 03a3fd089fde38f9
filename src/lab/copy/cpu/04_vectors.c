/* 04_vectors.c - a whole vector with each load and store.
 *
 * One instruction moves W floats: 4, 8 or 16, depending on the instruction set. If the data is in a
 * cache, this is several times as fast. If the data is in memory, vectors gain less, because the
 * loops with and without vectors both wait for memory part of the time. Compare `--size=4096
 * --warm` with the default size. */
#include "lab/cpu.h"

RUNG(copy_vectors)
{
    const float *from = c->in[0];
    float *to = c->out;
    int64_t n = c->n[0], i = 0;
    for (; i + W <= n; i += W) {
        AS_WRITTEN;
        vf_store(to + i, vf_load(from + i));
    }
    for (; i < n; i++) to[i] = from[i];
}
