/* source.h - reads training text from a file, the cache, the network, or a Debian package. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "base/arena.h"

struct source_text {
    const char *text; /* UTF-8, lives in the arena */
    int64_t bytes;
    const char *from; /* to print: "the cache, ~/.cache/strobe/tinyshakespeare.txt" */
};

/* A file of the user, or "-" for the standard input, unchanged. ST_FORMAT with the command that
 * unpacks it: a compressed text. */
enum status source_file(struct source_text *t, const char *path, struct arena *a);

/* Converts line ends with carriage returns to \n and drops a byte order mark. Without `convert` it
 * warns that they become tokens. */
void source_newlines(struct source_text *t, bool convert, struct arena *a);

/* Tiny Shakespeare: the file `from` if not NULL (unchanged), else the cache
 * ($XDG_CACHE_HOME/strobe, else ~/.cache/strobe), else downloaded, verified by its SHA-256, and
 * cached. With `fall_back`, without network: the King James Bible of Debian's bible-kjv. */
enum status source_shakespeare(struct source_text *t, const char *from, bool fall_back,
                               struct arena *a);
/* The same text in the cache or downloaded: its path there. */
enum status source_shakespeare_path(const char **ret, struct arena *a);

#endif
