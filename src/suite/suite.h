/* suite.h - experiments that people make by hand, one command and one sheet of tables each; THE list of them is list.c.
 *
 * A suite reports what this program measures of its own engine. On a CPU each takes a smaller variant of itself, and says so. */
#ifndef SUITE_SUITE_H
#define SUITE_SUITE_H

#include "bench/bench_grid.h"
#include "machine/machine.h"
#include "present/sheet.h"

struct suite_request {
    char **word; /* overrides of keys; a list is an axis, or takes the place of the suite's own */
    int words;
    const char *size;           /* "small,medium": only these; NULL: all */
    const char *warmup, *phase; /* as at the command line; NULL: the suite's own */
    int64_t steps, iters;       /* 0: the suite's own */
    int64_t
        limit; /* bytes of memory, as if there were no more; 0: what is free, or what the suite has */
    enum bench_order order;
    const char *out_dir;                                      /* for suites that leave runs */
    bool full;                                                /* the published size on a CPU, too */
    const struct machine *machine;                            /* of a suite that asks for it */
    void (*each)(void *user, double share, const char *what); /* progress, 0 ... 1 */
    /* Runs a command of this program in a process of its own; what it prints goes to stderr, or, `quiet`, nowhere. */
    enum status (*command)(void *user, char *const *word, int words, bool quiet);
    void *user;
};

/* Options besides keys, a mask: those that a suite has a use for. */
enum suite_option {
    SUITE_SIZE = 1,
    SUITE_WARMUP = 2,
    SUITE_PHASE = 4,
    SUITE_STEPS = 8,
    SUITE_ITERS = 16,
    SUITE_LIMIT = 32,
    SUITE_ORDER = 64,
    SUITE_FULL = 128
};

struct suite {
    const char *name;  /* "cs336-e2e" */
    const char *title; /* a sentence */
    const char *text;  /* which text it reproduces */
    unsigned takes;    /* of enum suite_option; the rest is refused */
    bool machine;      /* it holds times against the machine's ceilings */
    bool runs;         /* it leaves run directories in out_dir */
    enum status (*run)(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                       struct arena *a);
    const struct suite_grid *grid; /* of those that are grids alone: grid.h */
};

extern const struct suite suites[]; /* ends with name == NULL */
/* A name that nobody has is ST_USAGE and names the nearest. */
enum status suite_find(const char *name, const struct suite **ret);
/* ST_USAGE where the request has an option that the suite does not take. */
enum status suite_check_options(const struct suite *s, const struct suite_request *r);
/* Fills the sheet but for device, date and version. After a Ctrl-C that was noted (base/interrupt.h) with what was measured until
 * then; ST_INTERRUPTED where that is nothing, or a training. */
enum status suite_run(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                      struct arena *a);
/* The device that the words ask for. */
enum status suite_device(const struct suite_request *r, struct device *ret);

#endif
