/* 02_lines.c - each access is on another cache line.
 *
 * Memory comes in lines of 64 bytes, 16 floats. The loop uses one float of each line and passes
 * over the whole array 16 times: each line is read 16 times and written 16 times, and each write
 * reads the line first. But unlike the steps of the rung before, steps of one line stay within a
 * page for a while: the hardware detects even steps and prefetches the next lines of a page. */
#include "lab/cpu.h"

enum { STRIDE = 16 }; /* floats: a line */

RUNG(copy_lines)
{
    const float *from = c->in[0];
    float *to = c->out;
    for (int64_t first = 0; first < STRIDE; first++)
        for (int64_t i = first; i < c->n[0]; i += STRIDE) to[i] = from[i];
}
