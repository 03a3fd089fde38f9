/* download.h - downloads one file whose SHA-256 is known. */
#ifndef DATA_DOWNLOAD_H
#define DATA_DOWNLOAD_H

#include "base/base.h"

struct remote_file {
    const char *url;
    const char *sha256; /* 64 hexadecimal digits */
    int64_t bytes;
    bool about; /* `bytes` is approximate: the file may be up to 1 % larger */
};

/* Downloads the file to `path`, which is created only if the digest matches. ST_IO: a network
 * error. ST_FORMAT: the file is too long, or its digest differs; then the message has the beginning
 * of both digests. ST_UNSUPPORTED: built without libcurl. */
enum status download(const struct remote_file *f, const char *path);

#endif
