/* tokenizer.h - reads a byte-level BPE vocabulary from the files of other programs.
 *
 * Text is always split by GPT-2's pattern (split.h). A vocabulary that splits text otherwise,
 * normalizes text or drops merges is refused, since the ids would be wrong. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "text/bpe.h"

struct json_t;

/* A token that no merge makes and that represents its own text, such as <|endoftext|>. */
struct special_token {
    struct token_text text;
    uint32_t id;
};

struct tokenizer {
    struct bpe bpe;
    const struct bpe_merge *merge; /* in order of priority */
    int64_t merges;
    const struct special_token *special; /* in order of decreasing length */
    int specials;
};

/* Reads a folder with tokenizer.json (Hugging Face) or with vocab.json and merges.txt (GPT-2), or a
 * file. A file whose name ends in .json is read as a tokenizer.json, any other file as a file of
 * ranks as tiktoken writes it (each line has a token in base64 and the token's id). The result
 * lives in the arena. ST_IO, ST_FORMAT, ST_UNSUPPORTED. */
enum status tokenizer_open(struct tokenizer *t, const char *path, struct arena *a);
/* Reads a tokenizer from the JSON value of a tokenizer.json. `where` is for messages. Result and
 * errors are as for tokenizer_open. */
enum status tokenizer_read(struct tokenizer *t, const struct json_t *root, const char *where,
                           struct arena *a);
/* The tokenizer as the JSON value of a tokenizer.json, which Hugging Face's tokenizers can open. */
struct json_t *tokenizer_json(const struct tokenizer *t);

/* The id of the special token with this text, or -1. */
int64_t tokenizer_special(const struct tokenizer *t, const char *text);
/* Returns the place of the first special token in a text, or -1; *ret is the token. */
int64_t tokenizer_find_special(const struct tokenizer *t, const char *text, int64_t bytes,
                               const struct special_token **ret);
bool tokenizer_is_special(const struct tokenizer *t, int64_t id);
/* The bytes of a token; length 0 for an id that has none. */
struct token_text tokenizer_text(const struct tokenizer *t, int64_t id);

#endif
