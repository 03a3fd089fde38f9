/* token_file.h - the tokens of one file: little-endian uint16 or uint32 after a header, if any.
 *
 * The tokens of a verified file may stay in memory: then reading them needs no system call, and
 * later changes of the file do not matter. The tokens of any other file are read and checked
 * whenever they are needed. A file is never mapped, so a file that shrinks while it is used causes
 * an error, not a signal. */
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
    void *memory; /* the tokens as in the file; NULL: tokens are read from the file */
};

/* Opens the file that the members path, first_byte, bytes_per_token and count of `like` describe.
 * ST_FORMAT: the file does not have the size that follows from these members. `source` says for the
 * message where the count is from ("meta.json"). `f` borrows the path. */
enum status token_file_open(struct token_file *f, const struct token_file *like,
                            const char *source);
/* A zeroed struct is closed already. */
void token_file_close(struct token_file *f);
/* Reads `n` tokens from token `first` on. ST_FORMAT if the file became shorter, or if a token is
 * not below `vocabulary`; the message has the file, the position and the token. */
enum status token_file_read(const struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            int32_t *ret);
/* Allocates memory for all tokens, which token_file_scan fills. If there is not enough memory,
 * tokens are read from the file as before. */
void token_file_keep(struct token_file *f);
/* Reads n tokens from the file and adds their bytes to the hash `h` unless it is NULL. If a token
 * is not below `vocabulary`, *ret_tokens gets the failure of the first such token; otherwise it
 * stays unchanged. The tokens after an invalid one are read, too, because a wrong digest explains
 * more than an invalid token. */
enum status token_file_scan(struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            struct hash *h, enum status *ret_tokens);

#endif
