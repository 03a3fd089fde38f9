/* 03_masks.c - 64 bytes at a time become masks, one for each class.
 *
 * A comparison of vectors and a movemask yield 32 bits at once; shifts and logical operations then
 * find where pieces begin (src/text/split.c). Only apostrophes and characters beyond ASCII cause
 * branches. Splitting is several times as fast; the merges are as before. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_masks)
{
    const struct bpe_input *x = c->in[0];
#define PUT(piece, n) put_naive(x, piece, n, c->out)
    EACH_PIECE(x, c, PUT);
#undef PUT
}
