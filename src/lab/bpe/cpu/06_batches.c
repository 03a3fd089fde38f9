/* 06_batches.c - keys of 256 words first, then their entries.
 *
 * The cache of words is larger than L2, so an entry takes tens of nanoseconds to come. Made one
 * after the other, each lookup waits. With the keys of a batch made first, a prefetch asks for all
 * entries, and they come while the next keys are made. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_batches)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    put_batches(x, c, ret->small_pages, ret);
}
