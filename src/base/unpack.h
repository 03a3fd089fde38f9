/* unpack.h - reads a file and decompresses it if it is in gzip or zstd format.
 *
 * The format is recognized by the first bytes. The file is read sequentially from its descriptor's
 * current position, so it may be a pipe. */
#ifndef BASE_UNPACK_H
#define BASE_UNPACK_H

#include "base/base.h"

struct unpack;

/* Takes the descriptor, which unpack_close closes. `name` is for messages and must stay valid.
 * ST_UNSUPPORTED for another compressed format, or if the program was built without the library;
 * the message has the command that unpacks the file. */
enum status unpack_open(struct unpack **ret, int fd, const char *name);
/* Reads up to `most` bytes; *ret_bytes is 0 at the end. ST_FORMAT: truncated or damaged. */
enum status unpack_read(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes);
/* Bytes of the file read so far; for a compressed file, fewer than unpack_read returned. */
int64_t unpack_consumed(const struct unpack *u);
void unpack_close(struct unpack *u);

#endif
