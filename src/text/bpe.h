/* bpe.h - byte pair encoding: the tables of a vocabulary, and the merging of one piece of text.
 *
 * Sennrich, Haddow and Birch 2016, in GPT-2's form, on bytes: a piece begins as single bytes; of
 * all neighbours whose pair some merge joins, the pair of the earliest merge is joined, the
 * leftmost of equal ones; and so on until no pair can be joined.
 *
 * Tokens are numbered by rank here: 0 to 255 are the bytes, 256 + i is what the i-th merge makes.
 * So the result of joining a pair is also its priority. Ids are what files and models contain; a
 * table leads from one to the other. The tables are shared by threads and never change. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "base/arena.h"

/* A token: bytes with a length, since it may have a zero byte and need not be whole characters. */
struct token_text {
    const char *bytes;
    int length; /* 0: there is no token of this id */
};

/* What two ids become when they are joined. */
struct bpe_merge {
    uint32_t left, right, result;
};

struct bpe_pair {
    uint32_t left, right;
};

struct bpe {
    int ids;                       /* one more than the highest id */
    const struct token_text *text; /* of each id */
    int ranks;
    const uint32_t *id; /* of each rank */
    /* private to bpe.c */
    /* Of each rank: the pair that is joined last when its own text is encoded. `left` is BPE_NONE
     * for bytes, and for a token whose text becomes other tokens, so that nothing ever makes it. */
    struct bpe_pair *parts;
    uint64_t *pair; /* a hash table of pairs of ranks */
    int pair_bits;
    uint32_t *pair_of_bytes; /* what two bytes become, by 256 left + right */
    uint64_t *joined;        /* a bit for two bytes: some token has them side by side */
};

enum { BPE_IDS_MOST = 1 << 20, BPE_TEXT_MOST = 1 << 23 };
enum { BPE_NONE = 0xffffffff };

/* Builds the tables of `ids` tokens and of merges in their order, in the arena. ST_FORMAT: a byte
 * is no token, a token is made of tokens that only later merges make, or the tokens have more than
 * BPE_TEXT_MOST bytes together. The texts must outlive the tables. */
enum status bpe_build(struct bpe *b, const struct token_text *text, int ids,
                      const struct bpe_merge *merge, int64_t merges, struct arena *a);

/* The rank of what the pair becomes, or BPE_NONE. */
uint32_t bpe_joined(const struct bpe *b, uint32_t left, uint32_t right);
/* False if no token has these two bytes side by side: then nothing is ever joined across them. */
static inline bool bpe_may_join(const struct bpe *b, uint8_t left, uint8_t right)
{
    return b->joined[left * 4 + right / 64] >> right % 64 & 1;
}

/* Whether the joined text of two tokens becomes these two, if only merges below the rank `limit`
 * are used. Each must be what its own text becomes. */
bool bpe_go_together(const struct bpe *b, uint32_t left, uint32_t right, uint32_t limit);
/* Whether a token is what its own text becomes. */
bool bpe_is_made(const struct bpe *b, uint32_t rank);

/* Encodes a fragment of 1 to BPE_SHORT_MOST bytes as ranks, at most n, and returns how many. The
 * time grows with n squared; longer fragments are encoded by walk.h. */
enum { BPE_SHORT_MOST = 128 };
int bpe_merge_short(const struct bpe *b, const char *text, int n, uint32_t *ret);

#endif
