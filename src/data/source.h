/* source.h - reads training text from a file, the cache, the network, or a Debian package. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "base/arena.h"

struct source_text {
    const char *text; /* UTF-8, lives in the arena */
    int64_t bytes;
    const char *from; /* to print: "the cache, ~/.cache/strobe/tinyshakespeare.txt" */
};

/* A file of the user, unchanged. */
enum status source_file(struct source_text *t, const char *path, struct arena *a);

/* Tiny Shakespeare: the file `from` if not NULL (unchanged), else the cache
 * ($XDG_CACHE_HOME/strobe, else ~/.cache/strobe), else downloaded, verified by its SHA-256, and
 * cached. With `fall_back`, without network: the King James Bible of Debian's bible-kjv. */
enum status source_shakespeare(struct source_text *t, const char *from, bool fall_back,
                               struct arena *a);

#endif
