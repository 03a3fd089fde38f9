/* bench_kernels.h - every kernel row that fits a call of a training step, timed on that call.
 *
 * A step of training is run once on random tokens. Where a call is met for the first time, every row that
 * fits it is run on copies of what the call was given there, in turn: so the numbers are those that such a
 * call sees, and losers stand beside winners. On a CPU what fits in a cache stays in it from run to run. On a
 * GPU copies of the inputs and outputs take turns, as many as its cache does not hold twice over, but no more
 * than 64; and all runs of a sample are one recording, so that the host does not slow them (stopwatch.h). */
#ifndef BENCH_BENCH_KERNELS_H
#define BENCH_BENCH_KERNELS_H

#include "base/stats.h"
#include "bench/bench_step.h"
#include "engine/engine.h"
#include "machine/machine.h"

struct bench_row {
    const struct kernel *kernel;
    bool taken;           /* the plan runs this one */
    const char *left_out; /* NULL, or why it was not timed */
    struct stats ms;      /* of one call */
    double flops, bytes;  /* per second */
    double
        share; /* of the ceiling, the larger of the two; above 1: the ceiling was measured too low,
                   * or the kernel only reads and is held against a copy */
    bool
        by_bytes; /* it is the share of what a copy of that size moves, not of the product's peak */
};

/* Calls of one operator with equal attributes (but for the place of a dropout) and types. */
struct bench_call {
    enum graph_kind kind;
    int step; /* of its plan: where it is met first */
    enum op op;
    int64_t per_step; /* how often a training step runs it */
    struct cost cost;
    enum dtype dtype;                /* of its first float input, or of its output */
    enum machine_precision products; /* whose peak its arithmetic is held against */
    const char *shape;               /* "768 x 384 x 128 tb", "f32 (12,64,512)" */
    const char *where;               /* "h.0.attn.c_attn" */
    struct bench_row *row;
    int rows;
    double ms_per_step; /* of the row that the plan takes: median x per_step */
};

struct bench_kernels {
    struct bench_call *call; /* what takes longest per step first */
    int calls, rows;
    struct products products; /* of a micro-step; a step has none besides */
    struct stats products_ms; /* these, one after the other */
    int64_t micro_steps;      /* of a step */
};

struct bench_kernels_options {
    enum op op;  /* only this one; OP_COUNT: all, and then the products alone */
    int samples; /* of a row */
    double
        limit_ms; /* that all rows together should take; slow ones give fewer samples (rounds.h) */
    const struct machine *machine; /* whose peaks the shares are of */
    void (*each)(void *user, int done, int rows, const struct bench_call *c);
    void *user;
};

/* The engine holds the plans of training and its own memory; its weights are drawn, and trained on random tokens. A
 * step that has no such operator leaves no calls. */
enum status bench_kernels_run(struct engine *e, const struct bench_kernels_options *o,
                              struct bench_kernels *ret, struct arena *a);

/* The distinct calls of a training step, without running one: what bench_kernels_run will time. */
void bench_calls_find(const struct program *program, enum op op, struct bench_kernels *ret,
                      struct arena *a);

#endif
