/* bpe.h - functions that the rungs of the ladder bpe share. */
#ifndef LAB_BPE_CPU_BPE_H
#define LAB_BPE_CPU_BPE_H

#include "lab/bpe/bpe.h"
#include "lab/cpu.h"
#include "text/bpe_long.h"
#include "text/split.h"

#include <string.h>

/* Appends the ids of n tokens, given as ranks. */
INLINE void put_ranks(const struct bpe_input *x, const uint32_t *rank, int64_t n,
                      struct bpe_output *ret)
{
    for (int64_t i = 0; i < n; i++) ret->id[ret->count++] = x->bpe->id[rank[i]];
}

/* Byte pair encoding by its definition: looks up all pairs, joins the pair of the earliest merge,
 * and repeats this until no pair can be joined. Pieces of more than BPE_SHORT_MOST bytes would take
 * too long, so they use bpe_long_merge. */
INLINE void put_naive(const struct bpe_input *x, const char *text, int64_t bytes,
                      struct bpe_output *ret)
{
    uint32_t token[BPE_SHORT_MOST], *at = token;
    int64_t n = bytes;
    if (bytes > BPE_SHORT_MOST) {
        at = ret->scratch;
        n = bpe_long_merge(x->bpe_long, text, bytes, at);
    }
    for (int64_t i = 0; i < n && at == token; i++) token[i] = (uint8_t)text[i];
    while (at == token) {
        uint32_t best = BPE_NONE;
        int64_t place = 0;
        for (int64_t i = 0; i + 1 < n; i++) {
            uint32_t joined = bpe_joined(x->bpe, token[i], token[i + 1]);
            if (joined >= best) continue;
            best = joined;
            place = i;
        }
        if (best == BPE_NONE) break;
        token[place] = best;
        n--;
        memmove(token + place + 1, token + place + 2, (size_t)(n - place - 1) * sizeof *token);
    }
    put_ranks(x, at, n, ret);
}

/* Like put_naive, but keeps the results of pairs, so that each join looks up only two pairs. */
INLINE void put_ranked(const struct bpe_input *x, const char *text, int64_t bytes,
                       struct bpe_output *ret)
{
    int64_t n = bytes <= BPE_SHORT_MOST ? bpe_merge_short(x->bpe, text, (int)bytes, ret->scratch)
                                        : bpe_long_merge(x->bpe_long, text, bytes, ret->scratch);
    put_ranks(x, ret->scratch, n, ret);
}

/* Calls PUT(text, bytes) for each piece, using the masks of text/split.h. */
#define EACH_PIECE(x, c, PUT)                                                    \
    do {                                                                         \
        enum { WINDOW = 256 };                                                   \
        struct splitter s_;                                                      \
        uint64_t begins_[WINDOW];                                                \
        int64_t begin_ = 0, end_;                                                \
        const char *text_ = (x)->text;                                           \
        split_begin(&s_, text_, (c)->n[0]);                                      \
        for (int64_t base_ = 0, n_; (n_ = split_next(&s_, WINDOW, begins_)) > 0; \
             base_ += n_ * SPLIT_BLOCK)                                          \
            for (int64_t k_ = 0; k_ < n_; k_++)                                  \
                for (uint64_t left_ = begins_[k_]; left_; left_ &= left_ - 1) {  \
                    end_ = base_ + k_ * SPLIT_BLOCK + __builtin_ctzll(left_);    \
                    if (end_ > begin_) PUT(text_ + begin_, end_ - begin_);       \
                    begin_ = end_;                                               \
                }                                                                \
        if ((c)->n[0] > begin_) PUT(text_ + begin_, (c)->n[0] - begin_);         \
    } while (0)

/* --- a cache of words ------------------------------------------------------------------------- */

/* A word of up to 15 bytes, filled up with zeros; the last byte is its length. */
struct bpe_word {
    uint64_t low, high;
};

/* Up to 3 ids and their count. */
struct bpe_entry {
    struct bpe_word word;
    uint32_t id[3], count;
};

enum { WORD_MOST = 15 };

INLINE struct bpe_word make_word(const char *text, int64_t bytes)
{
    struct bpe_word w;
    uint64_t n = (uint64_t)bytes;
    memcpy(&w, text, sizeof w);
    w.low &= n < 8 ? ((uint64_t)1 << 8 * n) - 1 : ~(uint64_t)0;
    w.high &= n > 8 ? ((uint64_t)1 << 8 * (n - 8)) - 1 : 0;
    w.high |= n << 56;
    return w;
}

INLINE struct bpe_entry *find_entry(void *cache, struct bpe_word w)
{
    uint64_t mixed = (w.low ^ w.high * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    mixed = (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u;
    return (struct bpe_entry *)cache + (mixed >> (64 - BPE_CACHE_BITS));
}

/* Appends the ids of a word. If entry `e` is of another word, encodes the word and, if it has at
 * most 3 ids, replaces the entry. */
INLINE void put_word(const struct bpe_input *x, struct bpe_entry *e, struct bpe_word w,
                     const char *text, int64_t bytes, struct bpe_output *ret)
{
    if (e->word.low == w.low && e->word.high == w.high) {
        memcpy(ret->id + ret->count, e->id, sizeof e->id);
        ret->count += e->count;
        return;
    }
    int64_t before = ret->count;
    put_ranked(x, text, bytes, ret);
    if (ret->count - before > COUNT_OF(e->id)) return;
    e->word = w;
    e->count = (uint32_t)(ret->count - before);
    memcpy(e->id, ret->id + before, sizeof e->id);
}

/* Appends the ids of all pieces, in batches: a word's entry is prefetched while the keys of later
 * words of the same batch are computed. */
INLINE void put_batches(const struct bpe_input *x, const struct lab_call *c, void *cache,
                        struct bpe_output *ret)
{
    enum { BATCH = 256 };
    const char *text[BATCH];
    int64_t bytes[BATCH], words = 0;
    struct bpe_word word[BATCH];
    struct bpe_entry *entry[BATCH];
#define FLUSH                                                           \
    for (int64_t i_ = 0; i_ < words; i_++)                              \
        if (bytes[i_] > WORD_MOST)                                      \
            put_ranked(x, text[i_], bytes[i_], ret);                    \
        else                                                            \
            put_word(x, entry[i_], word[i_], text[i_], bytes[i_], ret); \
    words = 0
#define TAKE(piece, n)                                     \
    do {                                                   \
        text[words] = (piece);                             \
        bytes[words] = (n);                                \
        if ((n) <= WORD_MOST) {                            \
            word[words] = make_word((piece), (n));         \
            entry[words] = find_entry(cache, word[words]); \
            __builtin_prefetch(entry[words]);              \
        }                                                  \
        if (++words == BATCH) {                            \
            FLUSH;                                         \
        }                                                  \
    } while (0)
    EACH_PIECE(x, c, TAKE);
    FLUSH;
#undef FLUSH
#undef TAKE
}

#endif
