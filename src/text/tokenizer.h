/* tokenizer.h - reads a byte-level BPE vocabulary from the files that other programs write.
 *
 * A vocabulary splits text by GPT-2's pattern (split.h); one that says that it splits otherwise,
 * normalizes text or drops merges is refused in one sentence, since it would give wrong ids. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H

#include "text/bpe.h"

struct json_t;

/* A token that no merge makes and that stands for itself, such as <|endoftext|>. */
struct special_token {
    struct token_text text;
    uint32_t id;
};

struct tokenizer {
    struct bpe bpe;
    const struct bpe_merge *merge; /* in their order */
    int64_t merges;
    const struct special_token *special; /* the longest texts first */
    int specials;
};

/* Reads a folder with tokenizer.json (Hugging Face), or with vocab.json and merges.txt (GPT-2); or
 * a file: tokenizer.json by whatever name that ends in .json, else ranks as tiktoken writes them
 * (lines of a token in base64 and its id). All of it lives in the arena. ST_IO, or ST_FORMAT and
 * ST_UNSUPPORTED with what is wrong. */
enum status tokenizer_open(struct tokenizer *t, const char *path, struct arena *a);
/* The same from the value of a tokenizer.json. `where` is for messages. */
enum status tokenizer_read(struct tokenizer *t, const struct json_t *root, const char *where,
                           struct arena *a);
/* As the value of a tokenizer.json, which Hugging Face's tokenizers open. */
struct json_t *tokenizer_json(const struct tokenizer *t);

/* The id of the special token of this text, or -1. */
int64_t tokenizer_special(const struct tokenizer *t, const char *text);
/* The first special token in a text: its place, and which; -1: there is none. */
int64_t tokenizer_find_special(const struct tokenizer *t, const char *text, int64_t bytes,
                               const struct special_token **ret);
bool tokenizer_is_special(const struct tokenizer *t, int64_t id);
/* The bytes of a token; length 0 for an id that has none. */
struct token_text tokenizer_text(const struct tokenizer *t, int64_t id);

#endif
