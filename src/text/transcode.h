/* transcode.h - converts a stream of text to a stream of ids, or back, with several threads.
 *
 * Ids have one of three forms: words ("464 3290\n"); lines of JSON ({"ids": [464, 3290]}), one for
 * each document, whose text is {"text": "The dog"}; or raw: unsigned, little-endian, 2 bytes each
 * or, if the vocabulary has more than 65,536 ids, 4 bytes. Without JSON the whole stream is one
 * document. */
#ifndef TEXT_TRANSCODE_H
#define TEXT_TRANSCODE_H

#include "text/tokenizer.h"

enum transcode_form { FORM_WORDS, FORM_JSONL, FORM_RAW };

struct transcode {
    const struct tokenizer *tokenizer;
    enum transcode_form form; /* of the ids */
    bool special;             /* for tokenize: texts of special tokens become these tokens */
    int64_t threads;
    int in, out; /* descriptors */
    const char *in_name, *out_name;
    void (*each)(void *user, int64_t bytes); /* called with the bytes read so far; may be NULL */
    void *user;
};

/* ST_FORMAT, with the place: a line is not JSON of this form, a word is not an id, or an id has no
 * token. */
enum status tokenize(const struct transcode *t);
/* Bytes that are not UTF-8, such as parts of a character, are written unchanged; in JSON they are
 * replaced by U+FFFD. */
enum status detokenize(const struct transcode *t);

#endif
