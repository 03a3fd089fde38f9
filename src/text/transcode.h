/* transcode.h - a stream of text to a stream of ids, or back, by all threads.
 *
 * Ids are words ("464 3290\n"), lines of JSON ({"ids": [464, 3290]}, one for each document, whose
 * text is {"text": "The dog"}), or raw: unsigned, little-endian, 2 bytes each, 4 if the vocabulary
 * has more than 65,536 ids. Without JSON the whole stream is one document. */
#ifndef TEXT_TRANSCODE_H
#define TEXT_TRANSCODE_H

#include "text/tokenizer.h"

enum transcode_form { FORM_WORDS, FORM_JSONL, FORM_RAW };

struct transcode {
    const struct tokenizer *tokenizer;
    enum transcode_form form; /* of the ids */
    bool special;             /* tokenize: texts of special tokens become these tokens */
    int64_t threads;
    int in, out; /* descriptors */
    const char *in_name, *out_name;
    void (*each)(void *user, int64_t bytes); /* how much was read so far; may be NULL */
    void *user;
};

/* ST_FORMAT: a line is not JSON of this form, a word is no id, or an id has no token; the message
 * has its place. */
enum status tokenize(const struct transcode *t);
/* Text that is not UTF-8, as a part of a character, is written as it is; in JSON, as U+FFFD. */
enum status detokenize(const struct transcode *t);

#endif
