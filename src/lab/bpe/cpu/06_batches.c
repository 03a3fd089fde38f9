/* 06_batches.c - keys of 256 words first, then their entries.
 *
 * The cache of words is larger than L2, so loading an entry takes tens of nanoseconds. If each
 * lookup follows the computation of its key, each lookup waits. Here the keys of a batch are
 * computed first and their entries prefetched, so the entries arrive while the next keys are
 * computed. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_batches)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    put_batches(x, c, ret->small_pages, ret);
}
