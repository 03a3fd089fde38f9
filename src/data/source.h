/* source.h - where the real text comes from: a file, the cache, the network, or a Debian package. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "base/arena.h"

struct source_text {
    const char *text; /* UTF-8, lives in the arena */
    int64_t bytes;
    const char *from; /* for people: "the cache, ~/.cache/strobe/tinyshakespeare.txt" */
};

/* A text of the user's own, used as it is. */
enum status source_file(struct source_text *t, const char *path, struct arena *a);

/* Tiny Shakespeare: `from` if not NULL (any file; used as it is), else the cache
 * ($XDG_CACHE_HOME/strobe, else ~/.cache/strobe), else downloaded and verified by its SHA-256, then
 * cached. With `fall_back`, if the network is closed: the King James Bible of Debian's bible-kjv. */
enum status source_shakespeare(struct source_text *t, const char *from, bool fall_back,
                               struct arena *a);

#endif
