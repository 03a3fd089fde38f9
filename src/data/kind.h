/* kind.h - THE table of kinds of data sets: what a token is, and how text becomes tokens.
 *
 * A new kind: its functions and its row in a file of its own, beside characters.c; its
 * declaration below; its place in the table of kind.c. */
#ifndef DATA_KIND_H
#define DATA_KIND_H

#include "data/vocabulary.h"

/* A whole text as tokens. */
struct tokenized {
    struct vocabulary vocabulary;
    void *token; /* uint16_t or uint32_t by token_bytes(vocabulary.size) */
    int64_t count;
};

struct data_kind {
    const char *name; /* "characters": what tokens are; the value of "kind" in meta.json */
    /* ST_FORMAT: the text cannot be data of this kind; ST_UNSUPPORTED: its vocabulary
     * would have more than VOCABULARY_MAX entries. NULL: such sets are made otherwise. */
    enum status (*tokenize)(const char *text, int64_t bytes, struct arena *a,
                            struct tokenized *ret);
    enum status (*encode)(const struct vocabulary *v, const char *text, struct arena *a,
                          int32_t **ret_ids, int64_t *ret_count);
    /* What meta.json has of the vocabulary is one of three: its size (ids without texts); a
     * tokenizer, which becomes one; or the list of texts, of which the last function yields the
     * first that is not valid, or -1. */
    void (*sized)(struct vocabulary *ret, int size, struct arena *a);
    void (*of_tokenizer)(struct vocabulary *ret, const struct tokenizer *t);
    int (*invalid_entry)(const struct vocabulary *v);
    const char *invalid; /* what is wrong with it */
};

/* The first row of the table is the default. */
extern const struct data_kind data_characters;
extern const struct data_kind data_byte_pairs;
extern const struct data_kind data_tokens;

/* Ids of GPT-2's tokens and of Llama 3's. */
enum { GPT2_VOCABULARY = 50257, LLAMA3_VOCABULARY = 128256 };

/* Row i of the table, NULL after the last. */
const struct data_kind *data_kind_at(int i);
/* NULL if there is none of that name. */
const struct data_kind *data_kind_find(const char *name);
/* The names of all kinds, comma-separated, each in `quote`. */
const char *data_kind_names(const char *quote, struct arena *a);

#endif
