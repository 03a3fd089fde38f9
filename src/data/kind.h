/* kind.h - the kinds of data sets: what a token is, and how text becomes tokens.
 *
 * A new kind needs a file with its functions and its struct data_kind, like characters.c, a
 * declaration below, and a place in the table of kind.c. */
#ifndef DATA_KIND_H
#define DATA_KIND_H

#include "data/vocabulary.h"

/* A whole text as tokens. */
struct tokenized {
    struct vocabulary vocabulary;
    void *token; /* uint16_t or uint32_t, depending on token_bytes(vocabulary.size) */
    int64_t count;
};

struct data_kind {
    const char *name; /* "characters": what tokens are; the value of "kind" in meta.json */
    /* ST_FORMAT: the text cannot be data of this kind; ST_UNSUPPORTED: its vocabulary would have
     * more than VOCABULARY_MAX entries. NULL: a text alone does not make such a set. */
    enum status (*tokenize)(const char *text, int64_t bytes, struct arena *a,
                            struct tokenized *ret);
    enum status (*encode)(const struct vocabulary *v, const char *text, struct arena *a,
                          int32_t **ret_ids, int64_t *ret_count);
    /* A kind has one of these three functions, depending on how meta.json stores the vocabulary.
     * sized: it stores only the size (ids without texts). of_tokenizer: it stores a tokenizer.
     * invalid_entry: it stores a list of texts; returns the first invalid entry, or -1. */
    void (*sized)(struct vocabulary *ret, int size, struct arena *a);
    void (*of_tokenizer)(struct vocabulary *ret, const struct tokenizer *t);
    int (*invalid_entry)(const struct vocabulary *v);
    const char *invalid; /* for messages: what is wrong with an invalid entry */
};

/* The first row of the table is the default. */
extern const struct data_kind data_characters;
extern const struct data_kind data_byte_pairs;
extern const struct data_kind data_tokens;

/* The vocabulary sizes of GPT-2 and of Llama 3. */
enum { GPT2_VOCABULARY = 50257, LLAMA3_VOCABULARY = 128256 };

/* Kind i of the table; NULL after the last. */
const struct data_kind *data_kind_at(int i);
/* NULL: there is no kind with this name. */
const struct data_kind *data_kind_find(const char *name);
/* The names of all kinds, comma-separated, each in `quote`. */
const char *data_kind_names(const char *quote, struct arena *a);

#endif
