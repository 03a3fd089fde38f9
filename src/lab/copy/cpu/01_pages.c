/* 01_pages.c - each access is on another page of memory.
 *
 * The loop copies float 0 of every page of 4 KiB, then float 1 of every page, and so on. Each
 * access needs a new cache line of 64 bytes and uses 4 of them, and by the time the line is needed
 * again it has long been evicted. Worse, each access needs the address of another page: the
 * processor keeps a few thousand translations (the TLB) and must look up all others in the page
 * table, and it does not prefetch across pages. Expect a hundredth of the speed of a plain loop. */
#include "lab/cpu.h"

enum { STRIDE = 1024 }; /* floats: 4 KiB */

RUNG(copy_pages)
{
    const float *from = c->in[0];
    float *to = c->out;
    for (int64_t first = 0; first < STRIDE; first++)
        for (int64_t i = first; i < c->n[0]; i += STRIDE) to[i] = from[i];
}
