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
    /* Either `text`, the text of each token (for the kind "characters" in UTF-8, sorted by code
     * point), or `tokenizer` (for the kind "bpe"). */
    const char *const *text;
    const struct tokenizer *tokenizer;
};

/* Converts text to token ids. ST_USAGE: a part of the text, which the message names, has no token.
 * ST_FORMAT: the text is invalid (for characters: not UTF-8); the message has the byte. */
enum status vocabulary_encode(const struct vocabulary *v, const char *text, struct arena *a,
                              int32_t **ret_ids, int64_t *ret_count);
/* The text of one token, for display; empty for an id without text (padding of the vocabulary). */
const char *vocabulary_text(const struct vocabulary *v, int32_t id);
/* The bytes of one token, which may be a part of a character and may include zeros. */
struct token_text vocabulary_bytes(const struct vocabulary *v, int32_t id);
/* The number of bytes of text that a token represents: 0 for a special token, such as the end of a
 * document; -1 if texts are unknown. */
int vocabulary_text_bytes(const struct vocabulary *v, int32_t id);
/* Whether both vocabularies give the same ids to the same texts, as far as the texts of both are
 * known. */
bool vocabulary_same(const struct vocabulary *v, const struct vocabulary *w);
/* Whether the texts of both vocabularies are known and vocabulary_same is false. */
bool vocabulary_differs(const struct vocabulary *v, const struct vocabulary *w);
/* Reads a vocabulary from the meta.json at `path`. */
enum status vocabulary_read(struct vocabulary *v, const char *path, struct arena *a);

#endif
