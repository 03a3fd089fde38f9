/* 05_clock.c - a chain of additions, each of which takes one clock of the processor.
 *
 * Its time is the clock that the processor runs at now, which the system may not report. */
#include "lab/cpu.h"

RUNG(memory_clock)
{
    uint64_t x = (uint64_t)c->n[0], y = x;
    for (int64_t i = 0; i < c->n[0]; i += 16)
        for (int k = 0; k < 16; k++) {
            x += y;
            __asm__ volatile("" : "+r"(x), "+r"(y)); /* one addition, not a multiplication */
        }
    *(uint64_t *)c->out = x;
}
