/* token_split.h - the tokens of one split: one or several files (shards), read as if concatenated.
 *
 * The work of verifying a split is bounded. A small split, of up to TOKEN_SPLIT_MEMORY bytes, is
 * verified completely and then stays in memory. In a larger split, TOKEN_SPLIT_BLOCKS evenly spread
 * blocks are verified; the first block is at the beginning of the split, the last at its end. */
#ifndef DATA_TOKEN_SPLIT_H
#define DATA_TOKEN_SPLIT_H

#include "base/arena.h"
#include "data/token_file.h"

enum {
    TOKEN_SPLIT_MEMORY = 1 << 24, /* bytes */
    TOKEN_SPLIT_BLOCKS = 64,
    TOKEN_SPLIT_BLOCK = 1 << 16, /* bytes of each */
};

struct token_split {
    int64_t count; /* tokens of all files */
    int bytes_per_token;
    /* private to token_split.c */
    int files;
    struct shard {
        struct token_file file;
        int64_t first; /* number of its first token in the split */
    } * shard;
};

/* The number of bytes of a token id in a vocabulary of this size: 2 or 4. */
int token_bytes(int vocabulary);

/* Opens `files` files by token_file_open; all must have the same bytes_per_token. Nothing is open
 * after a failure. */
enum status token_split_open(struct token_split *s, const struct token_file *like, int files,
                             const char *source, struct arena *a);
/* A zeroed struct is closed already. */
void token_split_close(struct token_split *s);
/* Like token_file_read, but `first` is a number in the split, and the tokens may span files. */
enum status token_split_read(const struct token_split *s, int64_t first, int64_t n, int vocabulary,
                             int32_t *ret);

/* The path of the first file. */
const char *token_split_path(const struct token_split *s);

/* Whether the split has at most TOKEN_SPLIT_MEMORY bytes. */
bool token_split_is_small(const struct token_split *s);
/* The first token and the number of tokens of block i in a split of `count` tokens; false: there is
 * no block i. A small split is one block. */
bool token_split_block(int64_t count, int bytes_per_token, int i, int64_t *ret_first,
                       int64_t *ret_n);
/* Reads the blocks or, with `every_token`, all tokens, and computes the SHA-256 of their bytes in
 * the files. With `with_sizes` the hashed bytes begin with the number of tokens of each file
 * (int64). Returns read errors; *ret_tokens is ST_FORMAT if a token that was read is invalid. A
 * small split is kept in memory. */
enum status token_split_scan(struct token_split *s, int vocabulary, bool every_token,
                             bool with_sizes, char ret_digest[HASH_HEX], enum status *ret_tokens);
/* Computes the digest of the blocks, as token_split_scan does, for tokens in memory. */
void token_split_hash(const void *tokens, int64_t count, int bytes_per_token,
                      char ret_digest[HASH_HEX]);

#endif
