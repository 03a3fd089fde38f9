/* stream.h - a text of any size through several threads, in order and in flat memory.
 *
 * The text is read in units of about a megabyte, cut where the caller allows it; threads work on
 * one unit each, and what they make is passed on in the order of the text, so it does not depend on
 * the number of threads. */
#ifndef TEXT_STREAM_H
#define TEXT_STREAM_H

#include "base/str.h"

enum { STREAM_UNIT = 1 << 20, STREAM_UNIT_MOST = 1 << 28 };

struct stream_unit {
    const char *text; /* STREAM_PADDING bytes after it can be read */
    int64_t bytes;
    int64_t number; /* what `cut` counted, before this unit */
    struct str made;
};
enum { STREAM_PADDING = 64 };

struct stream {
    const char *name; /* of the input, for messages */
    void *user;
    int64_t threads;
    /* Reads up to `most` bytes in order; *ret_bytes is 0 at the end. Not called by two threads at
     * once, as little as `cut` and `pass`. */
    enum status (*read)(void *user, char *ret, int64_t most, int64_t *ret_bytes);
    /* The place up to which the text is a unit; 0: more text is needed. Without more text (`end`)
     * all of it is one. Adds to *number what it counts, such as lines. */
    int64_t (*cut)(void *user, const char *text, int64_t bytes, bool end, int64_t *number);
    /* Appends to u->made. `worker` is what `open` returned for this thread. */
    enum status (*work)(void *user, void *worker, struct stream_unit *u);
    void *(*open)(void *user);
    void (*close)(void *worker);
    enum status (*pass)(void *user, const struct stream_unit *u);
};

/* Returns the first failure in the order of the text; what came before it was passed on. A signal
 * is ST_INTERRUPTED. */
enum status stream_run(const struct stream *s);

#endif
