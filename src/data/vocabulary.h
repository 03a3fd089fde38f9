/* vocabulary.h - what the token numbers stand for, and text to numbers and back. */
#ifndef DATA_VOCABULARY_H
#define DATA_VOCABULARY_H

#include "base/arena.h"

struct vocabulary {
    int size;
    const char *const *text; /* UTF-8 of each token, one character each, sorted by code point */
};

/* Text to token numbers: characters (Unicode code points) by the vocabulary. A character that it does
 * not have is ST_USAGE and named; text that is no UTF-8 is ST_FORMAT and names the byte. */
enum status vocabulary_encode(const struct vocabulary *v, const char *text, struct arena *a,
                              int32_t **ret_ids, int64_t *ret_count);
/* The text of one token; that of a number without one (a padded vocabulary) is empty. */
const char *vocabulary_text(const struct vocabulary *v, int32_t id);
/* Reads a vocabulary from the meta.json at `path`. */
enum status vocabulary_read(struct vocabulary *v, const char *path, struct arena *a);

#endif
