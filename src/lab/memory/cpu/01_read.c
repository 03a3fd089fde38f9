/* 01_read.c - reads the working set again and again, in whole vectors.
 *
 * Eight independent sums let eight loads be under way without waiting for an addition. The sum of
 * integers is exact, so the caller can check it. */
#include "lab/cpu.h"

RUNG(memory_read)
{
    enum { TIMES = 8 };
    const uint32_t *from = c->in[0];
    int64_t n = c->n[0], passes = c->n[1];
    vu sum[TIMES] = {0}, all = {0}, a;
    for (int64_t p = 0; p < passes; p++) {
        for (int64_t i = 0; i < n; i += TIMES * W)
            for (int k = 0; k < TIMES; k++) {
                memcpy(&a, from + i + k * W, sizeof a);
                sum[k] += a;
            }
        __asm__ volatile("" ::: "memory"); /* makes the compiler read again in every pass */
    }
    for (int k = 0; k < TIMES; k++) all += sum[k];
    uint32_t total = 0;
    for (int i = 0; i < W; i++) total += all[i];
    *(uint32_t *)c->out = total;
}
