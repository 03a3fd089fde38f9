/* download.h - downloads one file whose SHA-256 is known. */
#ifndef DATA_DOWNLOAD_H
#define DATA_DOWNLOAD_H

#include "base/base.h"

struct remote_file {
    const char *url;
    const char *sha256; /* 64 hexadecimal digits */
    int64_t bytes;
    bool about; /* `bytes` is right up to one in a hundred */
};

/* The file appears only if its digest matches. Network errors: ST_IO. Other contents:
 * ST_FORMAT, with prefixes of both digests. Built without libcurl: ST_UNSUPPORTED. */
enum status download(const struct remote_file *f, const char *path);

#endif
