/* 02_write.c - writes the working set again and again, in whole vectors.
 *
 * Word i is i times a constant, so that a reader can check that all words were written. Stores go
 * through the caches, so a line that is not in a cache is read before it is written; these reads
 * are not counted. */
#include "lab/cpu.h"
#include "lab/memory/memory.h"

RUNG(memory_write)
{
    enum { TIMES = 4 };
    uint32_t *to = c->out, first[W];
    int64_t n = c->n[0], passes = c->n[1];
    for (int i = 0; i < W; i++) first[i] = memory_word((uint64_t)i);
    for (int64_t p = 0; p < passes; p++) {
        vu a[TIMES], step = {0};
        step += memory_word(TIMES * W);
        memcpy(&a[0], first, sizeof a[0]);
        for (int k = 1; k < TIMES; k++) a[k] = a[k - 1] + memory_word(W);
        for (int64_t i = 0; i < n; i += TIMES * W)
            for (int k = 0; k < TIMES; k++) {
                memcpy(to + i + k * W, &a[k], sizeof a[k]);
                a[k] += step;
            }
        __asm__ volatile("" ::: "memory"); /* makes the compiler write in every pass */
    }
}
