/* 04_threads.c - the threads share the blocks of queries.
 *
 * Blocks of 64 queries do not depend on each other. With a causal mask, later blocks have more
 * keys, so each thread takes the next block when it has finished one (dynamic scheduling). */
#include "lab/attention/cpu/tiles.h"

#include <omp.h>

RUNG(attention_threads)
{
    int64_t tokens = c->n[2], blocks = (tokens + TILE - 1) / TILE, all = c->n[0] * c->n[1] * blocks;
    struct tiles *tiles = c->scratch;
#pragma omp parallel for num_threads(c->threads) schedule(dynamic)
    for (int64_t i = 0; i < all; i++) {
        struct head head = head_of(c, i / blocks);
        int64_t first = i % blocks * TILE;
        attend(&tiles[omp_get_thread_num()], &head, first,
               tokens - first < TILE ? tokens - first : TILE);
    }
}
