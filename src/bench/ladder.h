/* ladder.h - times a training step at each rung; each rung changes one setting of the rung before.
 *
 * On a CPU the rungs run in interleaved rounds, so that clock drift favors none. On a GPU, or if
 * all rungs together need more than half of the memory, they run one after another. All rungs start
 * from the same weights and see the same random tokens. CPU and GPU have different ladders, but
 * rungs with the same name have the same settings. Several ranks have a third ladder, whose rungs
 * differ in how gradients are summed. */
#ifndef BENCH_LADDER_H
#define BENCH_LADDER_H

#include "base/judge.h"
#include "base/stats.h"
#include "engine/facts.h"
#include "engine/gauge.h"
#include "machine/machine.h"

enum { LADDER_RUNGS = 8 }; /* at most */
enum ladder_order { LADDER_IN_TURN, LADDER_NO_ROOM, LADDER_WARM };

struct ladder_rung {
    const char *name;    /* "bfloat16" */
    const char *differs; /* the change from the rung before: "--dtype=bfloat16" */
    const char *reason;  /* why the rung was not run; NULL: it was run */
    struct config config;
    enum machine_precision precision; /* of the matmuls */
    struct facts facts;
    struct stats ms; /* per step */
    double first_ms; /* of the very first step */
    double loss;     /* of the first step, before any update: equal at each rung up to rounding */
    double tokens_per_s;
    double times_before, times_first; /* speedup over the preceding rung that ran; over the first */
    /* Compared with the preceding rung that ran; by pairs of samples if rungs ran in rounds. */
    struct judgement speed;
    double mfu;        /* nanoGPT's FLOPs / measured matmul peak of the rung's precision */
    double plan_share; /* the FLOPs of the plan / the same peak */
    double error;    /* of one matmul in this precision (product_error.h); 0: unknown, or 8 bits */
    int64_t started; /* kernels launched in the first step; 0: not counted */
    int64_t taken;   /* used memory in bytes, from the driver; 0: unknown */
    struct gauge_summary gauges; /* device telemetry without the first steps; no samples: unknown */
};

struct ladder {
    struct ladder_rung rung[LADDER_RUNGS];
    int rungs;
    /* nanoGPT's counts: N, and 6 N + 12 L C T (model_flops_per_token). */
    double parameters, flops_per_token;
    /* The mfu or plan_share of a rung is above 1: the peak was measured too low. */
    bool peak_exceeded;
    enum ladder_order order;
    int64_t bytes, room; /* planned memory of all rungs together; ladder_options.room */
    /* If rungs need too much memory: the largest batch_size with which they fit; else 0. */
    int64_t batch_that_fits;
    double expected_ms; /* of all rungs, on a CPU that is otherwise idle; 0: unknown */
    double others;      /* share of the processors that other programs used; NAN: unknown */
};

struct ladder_options {
    const struct config *config; /* the ladder overrides its own keys */
    int64_t vocab;
    int64_t room;    /* usable bytes of memory; -1: unknown, no limit */
    int steps;       /* per rung */
    double limit_ms; /* per rung; a slow rung runs fewer steps (rounds.h) */
    const struct machine *machine;
    void (*begin)(const struct ladder *l); /* before the first rung opens; may be NULL */
    void (*each)(void *user, double share, const char *what); /* progress 0 ... 1; may be NULL */
    void *user;
};

/* Finds the rungs with the lowest and the highest mean clock. Returns their difference as a
 * fraction of the highest; 0 if clocks are unknown. */
double ladder_clock_range(const struct ladder *l, const struct ladder_rung **ret_slowest,
                          const struct ladder_rung **ret_fastest);
/* True if the ladder of this configuration sets this key ("flash"). */
bool ladder_sets(const struct config *c, const char *key, int64_t length);
/* Finds the first row of the device's ladder, from row *at on, whose change the configuration does
 * not have yet. Sets *ret to a rung with the changed configuration, and *at to the row after it.
 * Returns false if there is no such row. */
bool ladder_next(const struct config *c, bool gpu, int *at, struct ladder_rung *ret,
                 struct arena *a);
/* Times all rungs; a rung that cannot run gets a reason. The rungs after such a rung keep its
 * change if the rung only needs too much memory, and leave the change out if it is unsupported.
 * Fails if no rung can run. */
enum status ladder_run(const struct ladder_options *o, struct ladder *ret, struct arena *a);

#endif
