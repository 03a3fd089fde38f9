/* source.h - reads training text from a file, the cache, the network, or a Debian package. */
#ifndef DATA_SOURCE_H
#define DATA_SOURCE_H

#include "base/arena.h"

struct source_text {
    const char *text; /* UTF-8, lives in the arena */
    int64_t bytes;
    const char *from; /* to print: "the cache, ~/.cache/strobe/tinyshakespeare.txt" */
};

/* Reads a file, or the standard input ("-"), unchanged. ST_FORMAT: the file is empty or compressed;
 * the message has the command that unpacks it. */
enum status source_file(struct source_text *t, const char *path, struct arena *a);

/* Converts line ends with carriage returns to \n and drops a byte order mark. If `convert` is
 * false, the text stays unchanged, and a warning says that such characters become tokens. */
void source_newlines(struct source_text *t, bool convert, struct arena *a);

/* Reads the file `from` (unchanged) or, if `from` is NULL, Tiny Shakespeare from the cache
 * ($XDG_CACHE_HOME/strobe, else ~/.cache/strobe). If Tiny Shakespeare is not cached, downloads it,
 * verifies its SHA-256 and caches it. If the download fails and `fall_back` is true, the text is
 * the King James Bible of Debian's bible-kjv. */
enum status source_shakespeare(struct source_text *t, const char *from, bool fall_back,
                               struct arena *a);
/* The path of Tiny Shakespeare in the cache; downloads it if needed. */
enum status source_shakespeare_path(const char **ret, struct arena *a);

#endif
