/* 04_ranks.c - the results of pairs are kept; a join looks up two.
 *
 * Joining a pair changes only its two neighbours. What all other pairs become is known already, so
 * the best one is found by a scan of an array, which the compiler turns into vectors. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_ranks)
{
    const struct bpe_input *x = c->in[0];
#define PUT(piece, n) put_ranked(x, piece, n, c->out)
    EACH_PIECE(x, c, PUT);
#undef PUT
}
