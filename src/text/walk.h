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

/* Empty tables: the first call of bpe_merge_long fills them, in tens of milliseconds. */
struct bpe_walk *walk_new(void);
void walk_free(struct bpe_walk *w);

#endif
