/* token_file.h - the tokens of one file: little-endian uint16 or uint32 after a header, if any.
 *
 * A file that was verified may stay in memory: then a step needs no system call, and what happens
 * to the file no longer matters. Of another one each row is read and checked. It is never mapped: a
 * file that shrinks while it is used is an error, not a signal. */
#ifndef DATA_TOKEN_FILE_H
#define DATA_TOKEN_FILE_H

#include "base/hash.h"

struct token_file {
    const char *path; /* NULL: not open */
    int64_t first_byte;
    int bytes_per_token; /* 2 or 4 */
    int64_t count;       /* tokens */
    /* private to token_file.c */
    int fd;
    void *memory; /* the tokens as in the file; NULL: they are read from it */
};

/* Opens the file that path, first_byte, bytes_per_token and count describe. ST_FORMAT if it does
 * not have the size that follows from them; `source` says where the count is from ("meta.json").
 * Keeps `path`. */
enum status token_file_open(struct token_file *f, const struct token_file *like,
                            const char *source);
/* A zeroed struct is closed already. */
void token_file_close(struct token_file *f);
/* Reads the tokens from `first` on. ST_FORMAT if the file became shorter, or if a token is not
 * below `vocabulary`; the message has the file, the position and the token. */
enum status token_file_read(const struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            int32_t *ret);
/* Allocates memory for the tokens, which token_file_scan fills. If that fails, they stay in the
 * file. */
void token_file_keep(struct token_file *f);
/* Reads n tokens from the file and adds their bytes to the hash, if there is one. *ret_tokens is
 * the failure of the first token that is not below `vocabulary`, else unchanged; the rest is read
 * all the same, since a wrong digest is the better answer. */
enum status token_file_scan(struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            struct hash *h, enum status *ret_tokens);

#endif
