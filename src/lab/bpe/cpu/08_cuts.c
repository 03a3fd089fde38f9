/* 08_cuts.c - long pieces are cut where no token has the two bytes side by side.
 *
 * No merge can ever join bytes across such a place, so a piece may be cut there: whole sentences of
 * Chinese and Japanese become characters, which are in the cache of words. Pieces that are still
 * longer than 15 bytes have their own cache, and an id of a vocabulary of up to 65,536 ids takes
 * two bytes. This is the encoder of `strobe tokenize` (src/text/encoder.c). */
#include "lab/bpe/cpu/bpe.h"
#include "text/encoder.h"

RUNG(bpe_cuts)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
    ret->count = encoder_run(ret->encoder, x->text, c->n[0], ret->packed);
}
