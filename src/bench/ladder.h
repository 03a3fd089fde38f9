/* ladder.h - what each acceleration buys: one training step at each rung, each rung one change from the last.
 *
 * On a CPU the rungs run in turn, round by round, so that drift of the clock favours none; where memory does
 * not hold them all at once, and on a GPU, they run one after the other. All of them start from the same
 * weights and see the same random tokens. A GPU has a ladder of its own. */
#ifndef BENCH_LADDER_H
#define BENCH_LADDER_H

#include "base/stats.h"
#include "engine/facts.h"
#include "engine/gauge.h"
#include "machine/machine.h"

enum { LADDER_RUNGS = 8 }; /* at most */
enum ladder_order { LADDER_IN_TURN, LADDER_NO_ROOM, LADDER_WARM };

struct ladder_rung {
    const char *name;    /* "bfloat16" */
    const char *differs; /* from the rung before: "--dtype=bfloat16" */
    const char *reason;  /* why it was not run; NULL: it was */
    struct config config;
    enum machine_precision products; /* their type */
    struct facts facts;
    struct stats ms; /* of a step */
    double first_ms; /* of the very first */
    double loss; /* of the first step, before any update: the same at each rung, but for rounding */
    double tokens_per_s;
    double times_before,
        times_first;   /* as fast as the last rung that ran, as the first; by medians */
    double mfu;        /* nanoGPT's count of FLOPs over the measured peak of products of its type */
    double plan_share; /* the same with what the operators of its plan count */
    int64_t started;   /* kernels, in the first step; 0: not counted */
    int64_t taken;     /* bytes that the driver says were taken; 0: not known */
    struct gauge_summary gauges; /* of the device, but for the first steps; no samples: not known */
};

struct ladder {
    struct ladder_rung rung[LADDER_RUNGS];
    int rungs;
    double parameters,
        flops_per_token; /* nanoGPT's: N, and 6 N + 12 L C T (model_flops_per_token) */
    enum ladder_order order;
};

struct ladder_options {
    const struct config *config; /* whose keys of the ladder do not count */
    int64_t vocab;
    int64_t room;    /* bytes of memory that may be used; -1: unknown, no limit */
    int steps;       /* of a rung */
    double limit_ms; /* of one rung: a slow one makes fewer steps (rounds.h) */
    const struct machine *machine;
    void (*each)(void *user, double share, const char *what); /* 0 ... 1; NULL: none */
    void *user;
};

/* The rungs between the mean clocks of which there is most: by how much of the higher one they differ, 0 where clocks are
 * not known. */
double ladder_clock_range(const struct ladder *l, const struct ladder_rung **ret_slowest,
                          const struct ladder_rung **ret_fastest);
/* True if the ladder sets that key ("flash"). */
bool ladder_sets(const char *key, int64_t length);
/* The change of the ladder of that device, from number *at of it on, that a configuration has not made yet: sets *ret to it
 * with the change, and *at behind it. False: there is none. */
bool ladder_next(const struct config *c, bool gpu, int *at, struct ladder_rung *ret,
                 struct arena *a);
/* A rung that cannot run here says why. One that is not served by this build is left out of the rungs above
 * it; one that needs too much memory is not. That none can be run is a failure. */
enum status ladder_run(const struct ladder_options *o, struct ladder *ret, struct arena *a);

#endif
