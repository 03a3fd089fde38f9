/* transcode.h - converts a stream of text to a stream of ids, or back, with several threads.
 *
 * Ids have one of three forms. Words: "464 3290\n". JSON: one line {"ids": [464, 3290]} for each
 * document; the text then has one line {"text": "The dog"} for each document. Raw: unsigned
 * little-endian numbers of 2 bytes or, if the vocabulary has more than 65,536 ids, of 4 bytes. In
 * the forms other than JSON the whole stream is one document. */
#ifndef TEXT_TRANSCODE_H
#define TEXT_TRANSCODE_H

#include "text/tokenizer.h"

enum transcode_form { FORM_WORDS, FORM_JSONL, FORM_RAW };

struct transcode {
    const struct tokenizer *tokenizer;
    enum transcode_form form; /* of the ids */
    bool special;             /* tokenize: the text of a special token becomes this token */
    int64_t threads;
    int in, out; /* descriptors */
    const char *in_name, *out_name;
    void (*each)(void *user, int64_t bytes); /* called with the bytes read so far; may be NULL */
    void *user;
};

/* Converts text to ids. ST_FORMAT: a line is not JSON of this form; the message has its number. */
enum status tokenize(const struct transcode *t);
/* Converts ids to text. Bytes that are not UTF-8, such as parts of a character, are written
 * unchanged; in JSON they are replaced by U+FFFD. ST_FORMAT: a line is not JSON of this form, a
 * word is not an id, the raw bytes are not whole ids, or an id has no token. */
enum status detokenize(const struct transcode *t);

#endif
