/* vocabulary.h - the text of each token id; converts text to token ids and back. */
#ifndef DATA_VOCABULARY_H
#define DATA_VOCABULARY_H

#include "base/arena.h"
#include "text/bpe.h"

struct data_kind;
struct tokenizer;

enum { VOCABULARY_MAX = 1 << 20 };

struct vocabulary {
    const struct data_kind *kind;
    int size;
    /* One of them: the text of each token, of characters in UTF-8 and sorted by code point; or the
     * tokenizer, of the kind "bpe". */
    const char *const *text;
    const struct tokenizer *tokenizer;
};

/* Converts text to token ids. Text that the vocabulary lacks is ST_USAGE, and the message names it;
 * text not of the kind (characters: invalid UTF-8) is ST_FORMAT, and the message has the byte. */
enum status vocabulary_encode(const struct vocabulary *v, const char *text, struct arena *a,
                              int32_t **ret_ids, int64_t *ret_count);
/* The text of one token, to be shown; empty for an id without text (padding of the vocabulary). */
const char *vocabulary_text(const struct vocabulary *v, int32_t id);
/* Its bytes, which may be a part of a character, or zero. */
struct token_text vocabulary_bytes(const struct vocabulary *v, int32_t id);
/* Bytes of the text that a token stands for: 0 for a special token, such as the end of a document;
 * -1 if texts are not known. */
int vocabulary_text_bytes(const struct vocabulary *v, int32_t id);
/* Whether both give the same ids to the same texts, as far as the texts are known. */
bool vocabulary_same(const struct vocabulary *v, const struct vocabulary *w);
/* Whether the texts of both are known and they do not. */
bool vocabulary_differs(const struct vocabulary *v, const struct vocabulary *w);
/* Reads a vocabulary from the meta.json at `path`. */
enum status vocabulary_read(struct vocabulary *v, const char *path, struct arena *a);

#endif
