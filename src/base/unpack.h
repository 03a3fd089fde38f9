/* unpack.h - reads a file as it is, or unpacked if it is compressed with gzip or zstd.
 *
 * The format is recognized by the first bytes. The file is read from where its descriptor stands,
 * in order, so it may be a pipe. */
#ifndef BASE_UNPACK_H
#define BASE_UNPACK_H

#include "base/base.h"

struct unpack;

/* Takes the descriptor, which unpack_close closes. `name` is for messages and must stay valid.
 * ST_UNSUPPORTED with the command that unpacks it: another format, or a library is missing. */
enum status unpack_open(struct unpack **ret, int fd, const char *name);
/* Up to `most` bytes; *ret_bytes is 0 at the end. ST_FORMAT: the file is cut or damaged. */
enum status unpack_read(struct unpack *u, char *ret, int64_t most, int64_t *ret_bytes);
/* Bytes of the file that were read so far, which are fewer than were returned if it is packed. */
int64_t unpack_consumed(const struct unpack *u);
void unpack_close(struct unpack *u);

#endif
