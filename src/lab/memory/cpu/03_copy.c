/* 03_copy.c - copies one half of the working set to the other, again and again.
 *
 * Stores go through the caches, as in 02_write.c. */
#include "lab/cpu.h"

RUNG(memory_copy)
{
    enum { TIMES = 4 };
    const float *from = c->in[0];
    float *to = c->out;
    int64_t n = c->n[0], passes = c->n[1];
    for (int64_t p = 0; p < passes; p++)
        for (int64_t i = 0; i < n; i += TIMES * W) {
            vf a[TIMES];
            for (int k = 0; k < TIMES; k++) a[k] = vf_load(from + i + k * W);
            for (int k = 0; k < TIMES; k++) vf_store(to + i + k * W, a[k]);
            __asm__ volatile("" ::: "memory"); /* keeps the compiler from calling memcpy */
        }
}
