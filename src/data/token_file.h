/* token_file.h - the tokens of one split on disk: raw little-endian uint16, without a header.
 *
 * A file that was verified stays in memory if it is small: then a step needs no system call, and
 * what happens to the file no longer matters. Of a larger one each row is read and checked. It is
 * never mapped: a file that shrinks while it is used is an error, not a signal. */
#ifndef DATA_TOKEN_FILE_H
#define DATA_TOKEN_FILE_H

#include "base/hash.h"

struct token_file {
    const char *path; /* NULL: not open */
    int fd;
    int64_t count;    /* tokens */
    uint16_t *memory; /* NULL: they are read from the file */
};

enum { TOKEN_FILE_MEMORY = 1 << 24 }; /* bytes */

/* ST_FORMAT if the file does not have 2 * count bytes. Keeps `path`. */
enum status token_file_open(struct token_file *f, const char *path, int64_t count);
/* A zeroed struct is closed already. */
void token_file_close(struct token_file *f);
/* Reads the tokens from `first` on. ST_FORMAT if the file became shorter, or if a token is not
 * below `vocabulary`; the message has the file, the position and the token. */
enum status token_file_read(const struct token_file *f, int64_t first, int64_t n, int vocabulary,
                            uint16_t *ret);
/* Reads the whole file: ST_FORMAT if its SHA-256 or a token is wrong. */
enum status token_file_verify(struct token_file *f, const char sha256[HASH_HEX], int vocabulary);

#endif
