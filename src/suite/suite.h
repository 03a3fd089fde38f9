/* suite.h - ready-made experiments: one command and one sheet of tables each. list.c is THE list
 * of them.
 *
 * A suite measures this program. On a CPU it runs a smaller variant, and a note says so. */
#ifndef SUITE_SUITE_H
#define SUITE_SUITE_H

#include "bench/bench_grid.h"
#include "machine/machine.h"
#include "present/sheet.h"

struct suite_request {
    char *
        *word; /* overrides of keys; a list is an axis, or replaces the suite's values of the key */
    int words;
    const char *size;           /* "small,medium": only these; NULL: all */
    const char *warmup, *phase; /* as on the command line; NULL: the suite's default */
    int64_t steps, iters;       /* 0: the suite's default */
    int64_t rounds;             /* of processes; 0: the suite's default */
    bool wide;                  /* also a table of one row a cell (grid_wide.h) */
    bool each_step;             /* also a table of every single step (grid_steps.h) */
    int64_t limit;              /* bytes of memory; 0: free memory, or the suite's limit */
    enum bench_order order;
    const char *out_dir;                                      /* for suites that leave runs */
    bool full;                                                /* the published size on a CPU, too */
    const struct machine *machine;                            /* if the suite requires it */
    void (*each)(void *user, double share, const char *what); /* progress, 0 ... 1 */
    /* Runs a command in a separate process; its output goes to stderr, or with `quiet` nowhere. */
    enum status (*command)(void *user, char *const *word, int words, bool quiet);
    void *user;
    const struct suite_grid *grid; /* of the suite; set by suite_run */
};

/* A mask of the options, other than configuration keys, that a suite accepts. */
enum suite_option {
    SUITE_SIZE = 1,
    SUITE_WARMUP = 2,
    SUITE_PHASE = 4,
    SUITE_STEPS = 8,
    SUITE_ITERS = 16,
    SUITE_LIMIT = 32,
    SUITE_ORDER = 64,
    SUITE_FULL = 128,
    SUITE_EACH = 256,
    SUITE_ROUNDS = 512,
    SUITE_WIDE = 1024
};

struct suite {
    const char *name;  /* "cs336-e2e" */
    const char *title; /* a sentence */
    const char *text;  /* what it reproduces */
    unsigned takes;    /* mask of enum suite_option; other options are refused */
    bool machine;      /* it compares times with the measured peaks */
    bool runs;         /* it writes run directories to out_dir */
    enum status (*run)(const struct suite_request *r, struct sheet *ret, struct arena *a);
    const struct suite_grid *grid; /* of suites with run == suite_run_grid */
};

extern const struct suite suites[]; /* ends with name == NULL */
/* ST_USAGE if there is no suite of that name; the message suggests the nearest. */
enum status suite_find(const char *name, const struct suite **ret);
/* ST_USAGE if the request has an option that the suite does not take. */
enum status suite_check_options(const struct suite *s, const struct suite_request *r);
/* Fills the sheet except device, date and version. After Ctrl-C (base/interrupt.h) it has the
 * results so far; ST_INTERRUPTED if there are none, or if a training was stopped. */
enum status suite_run(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                      struct arena *a);
/* The device that the request names. */
enum status suite_device(const struct suite_request *r, struct device *ret);

#endif
