/* bpe.h - byte pair encoding: the tables of a vocabulary, and the merging of one piece of text.
 *
 * The method is that of Sennrich, Haddow and Birch 2016 in GPT-2's form, on bytes: a piece begins
 * as single bytes. Each step joins the two neighboring tokens whose pair has the earliest merge
 * (of equal pairs the leftmost), until no pair has a merge.
 *
 * This code numbers tokens by rank: ranks 0 to 255 are the bytes, and rank 256 + i is the result of
 * merge i. So the rank of a pair's result is also the priority of the pair. Files and models
 * contain ids; a table maps ranks to ids. The tables never change, so threads may share them. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "base/arena.h"

/* The bytes of a token. They may include zero bytes and parts of characters. */
struct token_text {
    const char *bytes;
    int length; /* 0: there is no token with this id */
};

/* Joining the tokens with ids `left` and `right` makes the token with id `result`. */
struct bpe_merge {
    uint32_t left, right, result;
};

struct bpe_pair {
    uint32_t left, right;
};

struct bpe {
    int ids;                       /* one more than the highest id */
    const struct token_text *text; /* by id */
    int ranks;
    const uint32_t *id; /* by rank */
    /* The rest is private to bpe.c. */
    /* By rank: the pair that is joined last when the token's own text is encoded. `left` is
     * BPE_NONE for bytes, and for tokens that no encoding makes, because the merges turn their text
     * into other tokens. */
    struct bpe_pair *parts;
    uint64_t *pair; /* a hash table of pairs of ranks */
    int pair_bits;
    uint32_t *pair_of_bytes; /* the result of joining two bytes; index: 256 left + right */
    uint64_t *joined;        /* a bit for each pair of bytes: whether a token has them in a row */
};

enum { BPE_IDS_MOST = 1 << 20, BPE_TEXT_MOST = 1 << 23 };
enum { BPE_NONE = 0xffffffff };

/* Builds the tables in the arena from `ids` tokens and the merges in order of priority. ST_FORMAT:
 * a byte is not a token, a merge needs a token that only a later merge makes, or the tokens have
 * more than BPE_TEXT_MOST bytes together. The texts must outlive the tables. */
enum status bpe_build(struct bpe *b, const struct token_text *text, int ids,
                      const struct bpe_merge *merge, int64_t merges, struct arena *a);

/* The rank of the token that joining the pair makes, or BPE_NONE. */
uint32_t bpe_joined(const struct bpe *b, uint32_t left, uint32_t right);
/* False if no token has these two bytes side by side; then no merge joins what is before and after
 * the place between them. */
static inline bool bpe_may_join(const struct bpe *b, uint8_t left, uint8_t right)
{
    return b->joined[left * 4 + right / 64] >> right % 64 & 1;
}

/* Whether encoding the joined text of two tokens gives these two tokens, if only merges with ranks
 * below `limit` are used. Both tokens must satisfy bpe_is_made. */
bool bpe_go_together(const struct bpe *b, uint32_t left, uint32_t right, uint32_t limit);
/* Whether encoding a token's own text gives this token. */
bool bpe_is_made(const struct bpe *b, uint32_t rank);

/* Encodes a fragment of n bytes, 1 to BPE_SHORT_MOST, as at most n ranks and returns their number.
 * The time grows with n squared; bpe_long.h encodes longer fragments. */
enum { BPE_SHORT_MOST = 128 };
int bpe_merge_short(const struct bpe *b, const char *text, int n, uint32_t *ret);

#endif
