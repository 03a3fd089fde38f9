/* 04_ranks.c - the results of pairs are kept; a join looks up two.
 *
 * Merging a pair changes only the two pairs that the new token forms with its neighbors. The
 * results of all other pairs are kept in an array, and a scan, which the compiler vectorizes, finds
 * the best pair. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_ranks)
{
    const struct bpe_input *x = c->in[0];
#define PUT(piece, n) put_ranked(x, piece, n, c->out)
    EACH_PIECE(x, c, PUT);
#undef PUT
}
