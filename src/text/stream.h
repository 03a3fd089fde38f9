/* stream.h - processes a text of any size with several threads, in order and in constant memory.
 *
 * The text is read in units of about a megabyte, which end where the caller allows a cut. Each
 * thread works on one unit. The results are passed on in the order of the text, so they do not
 * depend on the number of threads. */
#ifndef TEXT_STREAM_H
#define TEXT_STREAM_H

#include "base/str.h"

enum { STREAM_UNIT = 1 << 20, STREAM_UNIT_MOST = 1 << 28, STREAM_PADDING = 64, STREAM_OUTPUTS = 2 };

struct stream_unit {
    const char *text; /* STREAM_PADDING bytes after the text can be read */
    int64_t bytes;
    bool ends;      /* a part of the input ends with this unit */
    int64_t number; /* set by `cut`, for `work` */
    int kind;       /* set by `cut`, for `work` */
    int64_t count;  /* set by `work`, for `pass` */
    struct str made[STREAM_OUTPUTS];
};

struct stream {
    const char *name; /* of the input, for messages */
    void *user;
    int64_t threads;
    /* Reads up to `most` bytes in order; *ret_bytes is 0 at the end of a part. read, more, cut and
     * pass are not called by two threads at once. */
    enum status (*read)(void *user, char *ret, int64_t most, int64_t *ret_bytes);
    /* Called at the end of a part. *ret: whether another part follows, which is read next. A unit
     * never contains text of two parts. NULL: the input has one part. */
    enum status (*more)(void *user, bool *ret);
    /* Returns where the unit ends; 0: more text is needed. At the end of a part (u->ends is true) 0
     * means the whole text, and any text after the returned place becomes the next unit. May set
     * u->number and u->kind if it does not return 0. */
    int64_t (*cut)(void *user, const char *text, int64_t bytes, struct stream_unit *u);
    /* Appends to u->made. `worker` is what `open` returned for this thread. */
    enum status (*work)(void *user, void *worker, struct stream_unit *u);
    void *(*open)(void *user);
    void (*close)(void *worker);
    enum status (*pass)(void *user, const struct stream_unit *u);
};

/* Returns the first failure in the order of the text; the units before it were passed on.
 * ST_INTERRUPTED: a signal. The threads inherit this thread's CPU affinity: call threads_unbind
 * before. */
enum status stream_run(const struct stream *s);

#endif
