/* bpe_long.h - encodes long fragments in time proportional to their length.
 *
 * A sequence of tokens is the byte pair encoding of a text exactly if each token is the encoding of
 * its own text, and each two neighboring tokens are the encoding of their joined text. So the
 * search goes from left to right and takes the longest token that matches. If this token cannot
 * follow the token before it, the search tries shorter tokens. If none can follow, the search
 * removes the last token and never comes to the place after that token again. The idea is from the
 * crate `bpe` of GitHub's rust-gems (https://github.com/github/rust-gems/tree/main/crates/bpe). */
#ifndef TEXT_BPE_LONG_H
#define TEXT_BPE_LONG_H

#include "text/bpe.h"

struct bpe_long;

/* The tables are filled by the first call of bpe_long_merge, in tens of milliseconds. Threads may
 * share them. */
struct bpe_long *bpe_long_open(const struct bpe *b);
void bpe_long_close(struct bpe_long *w);

/* Encodes a fragment of n > 0 bytes as at most n ranks and returns their number. */
int64_t bpe_long_merge(struct bpe_long *w, const char *text, int64_t n, uint32_t *ret);

#endif
