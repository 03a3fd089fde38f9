/* suite.h - ready-made experiments: one command and one sheet of tables each. list.c is THE list
 * of them.
 *
 * A suite measures this program. On a CPU it runs a smaller variant, and a note says so. */
#ifndef SUITE_SUITE_H
#define SUITE_SUITE_H

#include "base/opt.h"
#include "bench/bench_grid.h"
#include "machine/machine.h"
#include "present/sheet.h"

/* THE list of options, other than configuration keys, that suites accept: the bit in `takes`; the
 * member of the request; kind, name and value on the command line; the most that a number may be,
 * and 1 is the least; whether grids of the command line take it, too; help. */
/* clang-format off */
#define SUITE_OPTIONS(X) \
    X(PHASE,     phase,     TEXT, "phase",     "NAME,...", 0,       true,  "columns of a grid: inference, forward, backward, update, step (all except inference)") \
    X(WARMUP,    warmup,    TEXT, "warmup",    "N,...",    0,       true,  "steps before the measured ones (5)") \
    X(STEPS,     steps,     INT,  "steps",     "N",        1000000, true,  "measured steps (50; in a grid 10)") \
    X(ORDER,     order,     TEXT, "order",     "NAME",     0,       true,  "order of cells: rounds, twice (the second time reversed) or once (auto)") \
    X(LIMIT,     limit,     SIZE, "mem-limit", "SIZE",     0,       true,  "as in 80GiB: skip cells that need more memory") \
    X(WIDE,      wide,      FLAG, "wide",      NULL,       0,       true,  "first a table of one row a model: its sizes, forward, backward and step, each with its std") \
    X(EACH_STEP, each_step, FLAG, "each-step", NULL,       0,       true,  "also the time of every single step, drawn") \
    X(SIZE,      size,      TEXT, "size",      "NAME,...", 0,       false, "only these models") \
    X(ITERS,     iters,     INT,  "iters",     "N",        1000000000, false, "iterations of each training") \
    X(ROUNDS,    rounds,    INT,  "rounds",    "N",        1000,    false, "processes of each row (3)") \
    X(FULL,      full,      FLAG, "full",      NULL,       0,       false, "the published size on a CPU, too")
/* clang-format on */

#define SUITE_TYPE_TEXT                      const char *
#define SUITE_TYPE_INT                       int64_t
#define SUITE_TYPE_SIZE                      int64_t
#define SUITE_TYPE_FLAG                      bool
#define SUITE_INDEX(bit, ...)                SUITE_INDEX_##bit,
#define SUITE_BIT(bit, ...)                  SUITE_##bit = 1 << SUITE_INDEX_##bit,
#define SUITE_MEMBER(bit, member, kind, ...) SUITE_TYPE_##kind member;

enum { SUITE_OPTIONS(SUITE_INDEX) SUITE_OPTION_COUNT };
enum { SUITE_OPTIONS(SUITE_BIT) };

struct suite_request {
    char *
        *word; /* overrides of keys; a list is an axis, or replaces the suite's values of the key */
    int words;
    SUITE_OPTIONS(SUITE_MEMBER)    /* NULL, 0, false: not given, so the suite's default */
    const char *out_dir;           /* for suites that leave runs */
    const struct machine *machine; /* if the suite requires it */
    void (*each)(void *user, double share, const char *what); /* progress, 0 ... 1 */
    /* Runs a command in a separate process; its output goes to stderr, or with `quiet` nowhere. */
    enum status (*command)(void *user, char *const *word, int words, bool quiet);
    void *user;
    const struct suite_grid *grid; /* of the suite; set by suite_run */
};

struct suite {
    const char *name;  /* "cs336-e2e" */
    const char *title; /* a sentence */
    const char *text;  /* what it reproduces */
    unsigned takes;    /* mask of SUITE_PHASE ...; other options are refused */
    bool machine;      /* it compares times with the measured peaks */
    bool runs;         /* it writes run directories to out_dir */
    enum status (*run)(const struct suite_request *r, struct sheet *ret, struct arena *a);
    const struct suite_grid *grid; /* of suites with run == suite_run_grid */
};

extern const struct suite suites[]; /* ends with name == NULL */
/* ST_USAGE if there is no suite of that name; the message suggests the nearest. */
enum status suite_find(const char *name, const struct suite **ret);
/* Fills the SUITE_OPTION_COUNT rows of a command line that set the options of a request. After
 * opt_parse, suite_read_options checks the numbers. */
void suite_add_options(struct suite_request *r, struct opt *ret, struct arena *a);
enum status suite_read_options(struct suite_request *r);
/* ST_USAGE if the request has an option that the suite does not take; NULL: a grid. */
enum status suite_check_options(const struct suite *s, const struct suite_request *r);
/* Whether the request has the option of that name. */
bool suite_is_given(const struct suite_request *r, const char *option);
/* The options of a request, in the mask `which`, as words of a command line; returns how many. */
int suite_option_words(const struct suite_request *r, unsigned which, char **ret_word,
                       struct arena *a);
/* Fills the sheet except device, date and version. After Ctrl-C (base/interrupt.h) it has the
 * results so far; ST_INTERRUPTED if there are none, or if a training was stopped. */
enum status suite_run(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                      struct arena *a);
/* The device that the request names. */
enum status suite_device(const struct suite_request *r, struct device *ret);

#endif
