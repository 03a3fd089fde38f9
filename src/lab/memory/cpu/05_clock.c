/* 05_clock.c - a chain of additions, each of which takes one clock of the processor.
 *
 * The time of the chain gives the current clock rate of the processor, which the system may not
 * report. */
#include "lab/cpu.h"

RUNG(memory_clock)
{
    uint64_t x = (uint64_t)c->n[0], y = x;
    for (int64_t i = 0; i < c->n[0]; i += 16)
        for (int k = 0; k < 16; k++) {
            x += y;
            /* Keeps the compiler from replacing the additions by a multiplication. */
            __asm__ volatile("" : "+r"(x), "+r"(y));
        }
    *(uint64_t *)c->out = x;
}
