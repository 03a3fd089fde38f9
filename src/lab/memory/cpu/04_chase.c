/* 04_chase.c - follows a chain of addresses: each load needs the result of the load before.
 *
 * No two loads overlap, and no prefetcher guesses the next address of a random permutation, so the
 * time of a step is the latency of a load. The loop's other instructions overlap with the load. */
#include "lab/cpu.h"

RUNG(memory_chase)
{
    void *const *at = c->in[0];
    for (int64_t i = 0; i < c->n[0]; i++) at = (void *const *)*at;
    *(const void **)c->out = at;
}
