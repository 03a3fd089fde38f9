/* walk.h - encodes long fragments in a time proportional to their length.
 *
 * A sequence of tokens is what byte pair encoding makes of a text exactly if each token is what it
 * makes of the token's own text, and each two neighbours are what it makes of their joined text. So
 * one walks from left to right with the longest token that matches, takes the next shorter one
 * where it does not go with the token before it, and steps back where none does. A place that was
 * left this way is never visited again. The idea is that of the crate `bpe` of GitHub's rust-gems
 * (https://github.com/github/rust-gems/tree/main/crates/bpe). */
#ifndef TEXT_WALK_H
#define TEXT_WALK_H

#include "text/bpe.h"

struct bpe_walk;

/* Tables that the first long fragment fills, in tens of milliseconds; threads may share them. */
struct bpe_walk *walk_open(const struct bpe *b);
void walk_close(struct bpe_walk *w);

/* Encodes a fragment of n > 0 bytes as ranks, at most n, and returns how many. */
int64_t walk_merge(struct bpe_walk *w, const char *text, int64_t n, uint32_t *ret);

#endif
