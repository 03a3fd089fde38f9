/* 03_floats.c - neighboring floats, one at a time.
 *
 * Every byte of a cache line is used before the next line comes, so memory moves no useless byte.
 * One load and one store move only 4 bytes; the next rung shows what so many instructions cost. */
#include "lab/cpu.h"

RUNG(copy_floats)
{
    const float *from = c->in[0];
    float *to = c->out;
    for (int64_t i = 0; i < c->n[0]; i++) {
        AS_WRITTEN;
        to[i] = from[i];
    }
}
