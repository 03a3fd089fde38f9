/* ladder.h - what each acceleration buys: one training step at each rung, each rung one change from the last.
 *
 * The rungs run in turn, round by round, so that drift of the clock favours none; where memory does not
 * hold them all at once they run one after the other. All of them start from the same weights and see the
 * same random tokens. */
#ifndef MEASURE_LADDER_H
#define MEASURE_LADDER_H

#include "base/stats.h"
#include "measure/machine.h"
#include "train/facts.h"

enum { LADDER_RUNGS = 6 };

struct ladder_rung {
    const char *name;    /* "bfloat16" */
    const char *differs; /* from the rung before: "--dtype=bfloat16" */
    const char *reason;  /* why it was not run; NULL: it was */
    struct config config;
    enum dtype dtype; /* of its products */
    struct facts facts;
    struct stats ms; /* of a step */
    double first_ms; /* of the very first */
    double loss; /* of the first step, before any update: the same at each rung, but for rounding */
    double tokens_per_s;
    double times_before,
        times_first;   /* as fast as the last rung that ran, as the first; by medians */
    double mfu;        /* nanoGPT's count of FLOPs over the measured peak of products of its type */
    double plan_share; /* the same with what the operators of its plan count */
};

struct ladder {
    struct ladder_rung rung[LADDER_RUNGS];
    double parameters, flops_per_token; /* nanoGPT's: N, and 6 N + 12 L C T (gpt_flops_per_token) */
    bool interleaved;
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

/* True if the ladder sets that key ("flash"). */
bool ladder_sets(const char *key, int64_t length);
/* A rung that cannot run here says why. One that is not served by this build is left out of the rungs above
 * it; one that needs too much memory is not. That none can be run is a failure. */
enum status ladder_run(const struct ladder_options *o, struct ladder *ret, struct arena *a);

#endif
