/* base.h - how every part of the program says that something failed.
 *
 * A failure of the user's world (a missing file, a wrong value, no memory on the device) is
 * worded once, by fail(), where it is understood, and carried up as a status. A broken promise
 * of our own is BUG_IF: it prints and aborts, in every build. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define COUNT_OF(array)          ((int)(sizeof(array) / sizeof((array)[0])))

enum [[nodiscard]] status{
    ST_OK,          ST_USAGE, /* what the user asked for makes no sense: exit code 2 */
    ST_IO,                    /* the operating system said no */
    ST_FORMAT,                /* a file is not what it should be */
    ST_UNSUPPORTED,           /* right, but not to be had here */
    ST_DEVICE,                /* a device or its driver said no */
    ST_MEMORY,                /* a device has no memory left for what it is to do */
    ST_NUMERIC,               /* a value that is no number */
    ST_INTERRUPTED,           /* the user pressed Ctrl-C: exit code 130 */
    ST_HELP,                  /* -h was among the words: its help is shown, exit code 0 */
};

/* Words the failure and returns `st`. The text lives in the calling thread until the next fail(). */
enum status fail(enum status st, const char *format, ...) PRINTF_LIKE(2, 3);
/* Puts words in front of the failure that is being carried up: "node 118 gelu h.3.mlp: ...". */
enum status fail_in(enum status st, const char *format, ...) PRINTF_LIKE(2, 3);
/* What failed first, kept while something is closed that may fail, too: fail_keep before, fail_again after. */
struct failure {
    char message[1024], trail[512];
};
void fail_keep(struct failure *ret);
void fail_again(const struct failure *kept);
/* The last failure of this thread, one sentence without a newline. */
const char *fail_message(void);
/* Where the failure passed on its way up: "via plan/run.c:40, train/trainer.c:77"; may be empty. */
const char *fail_trail(void);
enum status fail_via(enum status st, const char *file, int line);

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
/* Of n >= 0 and a positive number: how many of these cover n, and the least multiple of it that does. */
static inline int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}
static inline int64_t round_up(int64_t n, int64_t to)
{
    return ceil_div(n, to) * to;
}

/* Passes a failure up. */
#define TRY(call)                                                                   \
    do {                                                                            \
        enum status try_status_ = (call);                                           \
        if (try_status_ != ST_OK) return fail_via(try_status_, __FILE__, __LINE__); \
    } while (0)

/* The same where the label `out` has something to release; `st` is then returned by the caller. */
#define TRY_OUT(st, call)                              \
    do {                                               \
        (st) = (call);                                 \
        if ((st) != ST_OK) {                           \
            (st) = fail_via((st), __FILE__, __LINE__); \
            goto out;                                  \
        }                                              \
    } while (0)

/* Aborts with the words when a promise of the program to itself is broken. Always on. */
#define BUG_IF(condition, ...)                                                        \
    do {                                                                              \
        if (__builtin_expect(!!(condition), 0)) bug(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

_Noreturn void bug(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
