/* download.h - downloads one file whose SHA-256 is known. */
#ifndef DATA_DOWNLOAD_H
#define DATA_DOWNLOAD_H

#include "base/base.h"

struct remote_file {
    const char *url;
    const char *sha256; /* 64 hexadecimal digits */
    int64_t bytes;
    bool about; /* `bytes` may be too small by 1 % */
};

/* Creates the file only if its digest matches. ST_IO: a network error. ST_FORMAT: the digest
 * differs; the message has prefixes of both. ST_UNSUPPORTED: built without libcurl. */
enum status download(const struct remote_file *f, const char *path);

#endif
