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
    bool ends;      /* this unit is the last of a part of the input (stream.more) */
    int64_t number; /* set by `cut`, for `work` */
    int kind;       /* set by `cut`, for `work` */
    int64_t count;  /* set by `work`, for `pass` */
    struct str made[STREAM_OUTPUTS];
};

struct stream {
    const char *name; /* of the input, for messages */
    void *user;
    int64_t threads;
    /* Reads up to `most` bytes in order; *ret_bytes is 0 at the end of a part. Two threads never
     * call read, more, cut or pass at the same time. */
    enum status (*read)(void *user, char *ret, int64_t most, int64_t *ret_bytes);
    /* Called at the end of a part, such as a document. *ret is true if another part follows, which
     * `read` then reads. A unit never contains text of two parts. NULL: the input has one part. */
    enum status (*more)(void *user, bool *ret);
    /* Returns where the unit ends; 0: more text is needed. At the end of a part (u->ends is true) 0
     * means that the unit is the whole text. Text after the returned place becomes the next unit.
     * `cut` may set u->number and u->kind if it does not return 0. */
    int64_t (*cut)(void *user, const char *text, int64_t bytes, struct stream_unit *u);
    /* Appends its results to u->made. `worker` is the result of `open` for this thread. */
    enum status (*work)(void *user, void *worker, struct stream_unit *u);
    void *(*open)(void *user);
    void (*close)(void *worker);
    enum status (*pass)(void *user, const struct stream_unit *u);
};

/* Returns the first failure in the order of the text; the units before the failure were passed on.
 * ST_INTERRUPTED: a signal came. The threads inherit the calling thread's CPU affinity, so call
 * threads_unbind first. */
enum status stream_run(const struct stream *s);

#endif
