/* 05_cache.c - a cache of words.
 *
 * Most words of a text have occurred before. An entry of 32 bytes holds a word of up to 15 bytes
 * and its ids; another word with the same hash replaces the entry, so memory does not grow. For
 * most words a hash and the load of one cache line now replace the merges. */
#include "lab/bpe/cpu/bpe.h"

RUNG(bpe_cache)
{
    const struct bpe_input *x = c->in[0];
    struct bpe_output *ret = c->out;
#define PUT(piece, n)                                                         \
    do {                                                                      \
        if ((n) > WORD_MOST) {                                                \
            put_ranked(x, piece, n, ret);                                     \
        } else {                                                              \
            struct bpe_word w_ = make_word(piece, n);                         \
            put_word(x, find_entry(ret->small_pages, w_), w_, piece, n, ret); \
        }                                                                     \
    } while (0)
    EACH_PIECE(x, c, PUT);
#undef PUT
}
