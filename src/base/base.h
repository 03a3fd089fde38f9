/* base.h - status codes and error messages, used by every part of the program.
 *
 * The function that detects an error of the outside world (a missing file, a wrong value, no device
 * memory) writes its message with fail(); its callers pass the status up. BUG_IF checks the
 * program's own invariants: it prints a message and aborts, in every build. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define COUNT_OF(array)          ((int)(sizeof(array) / sizeof((array)[0])))

enum [[nodiscard]] status{
    ST_OK,          ST_USAGE, /* invalid user input: exit code 2 */
    ST_ABSENT,                /* a file does not exist. ST_ABSENT to ST_FORMAT: errors of files */
    ST_DENIED,                /* the user lacks the permission */
    ST_BUSY,                  /* a temporary shortage, of file descriptors or memory */
    ST_FULL,                  /* the disk is full */
    ST_IO,                    /* another operating system error, such as a disk error */
    ST_FORMAT,                /* a file has invalid contents or is of the wrong kind */
    ST_UNSUPPORTED,           /* valid, but not supported here */
    ST_DEVICE,                /* an error of a device or its driver */
    ST_MEMORY,                /* out of device memory */
    ST_NUMERIC,               /* a NaN or infinite value */
    ST_INTERRUPTED,           /* the user pressed Ctrl-C: exit code 130 */
    ST_REGRESSION,            /* slower or larger than a baseline: exit code 3 */
    ST_HELP,                  /* -h or --help was given: print the help text, exit code 0 */
};

/* Sets the error message of this thread, which lives until the next fail(), and returns `st`.
 * Control characters are escaped (visible.h); line breaks stay if `format` has one. */
enum status fail(enum status st, const char *format, ...) PRINTF_LIKE(2, 3);
/* Puts a prefix before the current error message: "node 118 gelu h.3.mlp: ...". */
enum status fail_in(enum status st, const char *format, ...) PRINTF_LIKE(2, 3);
/* Save the current error before cleanup that may fail too, and restore it afterwards. */
struct failure {
    char message[1024], trail[512];
};
void fail_keep(struct failure *ret);
void fail_restore(const struct failure *kept);
/* The last error of this thread: one sentence without a newline. */
const char *fail_message(void);
/* Where the error passed on its way up: "via plan/run.c:40, train/trainer.c:77"; may be empty. */
const char *fail_trail(void);
enum status fail_via(enum status st, const char *file, int line);
/* Whether a status is one of the file errors of base/file.h. */
static inline bool is_of_files(enum status st)
{
    return st >= ST_ABSENT && st <= ST_FORMAT;
}

static inline int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
/* For n >= 0 and a positive divisor: the quotient rounded up, and the next multiple. */
static inline int64_t ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}
static inline int64_t round_up(int64_t n, int64_t to)
{
    return ceil_div(n, to) * to;
}

/* Returns the status to the caller if the call failed. */
#define TRY(call)                                                                   \
    do {                                                                            \
        enum status try_status_ = (call);                                           \
        if (try_status_ != ST_OK) return fail_via(try_status_, __FILE__, __LINE__); \
    } while (0)

/* Like TRY, for a function that releases resources at the label `out` and then returns `st`. */
#define TRY_OUT(st, call)                              \
    do {                                               \
        (st) = (call);                                 \
        if ((st) != ST_OK) {                           \
            (st) = fail_via((st), __FILE__, __LINE__); \
            goto out;                                  \
        }                                              \
    } while (0)

/* Prints the message and aborts if an invariant is violated; in all builds. */
#define BUG_IF(condition, ...)                                                        \
    do {                                                                              \
        if (__builtin_expect(!!(condition), 0)) bug(__FILE__, __LINE__, __VA_ARGS__); \
    } while (0)

_Noreturn void bug(const char *file, int line, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
