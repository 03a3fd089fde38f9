/* 02_lines.c - each access is on another cache line.
 *
 * Memory comes in lines of 64 bytes, 16 floats. The loop uses one float of each line and passes
 * over the whole array 16 times: each line is read 16 times, and written as often, after it was
 * read for that, too. But it walks forward in even steps: the hardware sees that and fetches the
 * next lines before they are needed, which it cannot do across pages. */
#include "lab/cpu.h"

enum { STRIDE = 16 }; /* floats: a line */

RUNG(copy_lines)
{
    const float *from = c->in[0];
    float *to = c->out;
    for (int64_t first = 0; first < STRIDE; first++)
        for (int64_t i = first; i < c->n[0]; i += STRIDE) to[i] = from[i];
}
