/* stream.h - a text of any size through several threads, in order and in flat memory.
 *
 * The text is read in units of about a megabyte, cut where the caller allows it; threads work on
 * one unit each, and what they make is passed on in the order of the text, so it does not depend on
 * the number of threads. */
#ifndef TEXT_STREAM_H
#define TEXT_STREAM_H

#include "base/str.h"

enum { STREAM_UNIT = 1 << 20, STREAM_UNIT_MOST = 1 << 28, STREAM_PADDING = 64, STREAM_OUTPUTS = 2 };

struct stream_unit {
    const char *text; /* STREAM_PADDING bytes after it can be read */
    int64_t bytes;
    bool ends;      /* a part of the input ends with this unit */
    int64_t number; /* for `cut` and `work` */
    int kind;       /* the same */
    int64_t count;  /* for `work` and `pass` */
    struct str made[STREAM_OUTPUTS];
};

struct stream {
    const char *name; /* of the input, for messages */
    void *user;
    int64_t threads;
    /* Reads up to `most` bytes in order; *ret_bytes is 0 at the end of a part. read, more, cut and
     * pass are not called by two threads at once. */
    enum status (*read)(void *user, char *ret, int64_t most, int64_t *ret_bytes);
    /* Whether another part follows the one that has ended, and goes on to it. Parts are in separate
     * units. NULL: the input has one. */
    enum status (*more)(void *user, bool *ret);
    /* The place up to which the text is a unit; 0: more text is needed. At the end of a part, where
     * u->ends is true, what it leaves becomes the next unit, and 0 means all. May set u->number and
     * u->kind if it does not return 0. */
    int64_t (*cut)(void *user, const char *text, int64_t bytes, struct stream_unit *u);
    /* Appends to u->made. `worker` is what `open` returned for this thread. */
    enum status (*work)(void *user, void *worker, struct stream_unit *u);
    void *(*open)(void *user);
    void (*close)(void *worker);
    enum status (*pass)(void *user, const struct stream_unit *u);
};

/* Returns the first failure in the order of the text; what came before it was passed on. A signal
 * is ST_INTERRUPTED. Its threads run where this thread may run: call threads_unbind before. */
enum status stream_run(const struct stream *s);

#endif
