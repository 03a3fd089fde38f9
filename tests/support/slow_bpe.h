/* slow_bpe.h - a simple implementation of GPT-2's pattern and merges, to test the fast code. */
#ifndef SUPPORT_SLOW_BPE_H
#define SUPPORT_SLOW_BPE_H

#include "text/bpe.h"

/* The length of the piece that begins at `from`: the alternatives of the pattern, tried one after
 * the other as a regular expression does. */
int64_t slow_piece(const char *text, int64_t bytes, int64_t from);

/* Joins one pair after the other and looks up all pairs again each time. Returns the number of ids
 * in `ret`. */
int64_t slow_merge(const struct token_text *text, int ids, const struct bpe_merge *merge,
                   int64_t merges, const char *piece, int64_t bytes, uint32_t *ret);

/* A random text of up to `most` bytes: words, runs of spaces, contractions, other scripts, bytes
 * that are not UTF-8. Returns its length. */
int64_t slow_random_text(uint64_t *seed, int64_t most, char *ret);
/* The next of a sequence of random numbers, 0 to below - 1. */
uint64_t slow_random(uint64_t *seed, uint64_t below);

#endif
