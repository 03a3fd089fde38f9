/* download.h - one file of the network, known beforehand by its length and SHA-256. */
#ifndef DATA_DOWNLOAD_H
#define DATA_DOWNLOAD_H

#include "base/base.h"

struct remote_file {
    const char *url;
    const char *sha256; /* 64 hexadecimal digits */
    int64_t bytes;
};

/* Downloads to `path`, which appears only when length and digest are right. No network: ST_IO. Other
 * bytes than expected: ST_FORMAT, with the beginnings of both digests. Built without libcurl:
 * ST_UNSUPPORTED. */
enum status download(const struct remote_file *f, const char *path);

#endif
