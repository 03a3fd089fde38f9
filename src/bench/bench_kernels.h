/* bench_kernels.h - times every kernel row that accepts a call of a training step, on that call.
 *
 * Runs one training step on random tokens. At the first occurrence of each distinct call, all rows
 * that accept the call run in turn on copies of its inputs, so all rows are timed on real data. On
 * a CPU, data that fits in a cache stays there from run to run. On a GPU the runs cycle through
 * copies of inputs and outputs, enough to exceed twice the size of L2 but at most 64, and all runs
 * of a sample are one captured graph, so the host does not slow them (stopwatch.h). */
#ifndef BENCH_BENCH_KERNELS_H
#define BENCH_BENCH_KERNELS_H

#include "base/stats.h"
#include "base/verdict.h"
#include "bench/bench_step.h"
#include "engine/engine.h"
#include "machine/machine.h"

struct bench_row {
    const struct kernel *kernel;
    bool taken;           /* the plan selects this row */
    const char *left_out; /* why the row was not timed; NULL: it was timed */
    struct stats ms;      /* per call */
    /* `order`: the verdict on this row compared with the fastest row of the call; VERDICT_NONE for
     * the fastest row itself. `fastest`: this is the fastest of several rows. */
    struct verdict order;
    bool fastest;
    double flops, bytes; /* per second */
    /* Fraction of the matmul peak or of copy bandwidth, whichever is larger. It is above 1 if the
     * peak was measured too low or the kernel only reads. */
    double share;
    bool by_bytes; /* `share` is a fraction of copy bandwidth, not of the matmul peak */
};

/* Calls of one operator with equal types and attributes, except the site of a dropout. */
struct bench_call {
    enum graph_kind kind;
    int step; /* step of the plan with the first occurrence */
    enum op op;
    int64_t per_step; /* executions per training step */
    struct cost cost;
    enum dtype dtype;                 /* of the first float input, else of the output */
    enum machine_precision precision; /* the peak with which the call's FLOPs are compared */
    const char *shape;                /* "768 x 384 x 128 tb", "f32 (12,64,512)" */
    const char *where;                /* "h.0.attn.c_attn" */
    struct bench_row *row;
    int rows;
    double ms_per_step; /* median of the selected row x per_step */
};

struct bench_kernels {
    struct bench_call *call; /* sorted by ms_per_step, the longest first */
    int calls, rows;
    struct matmuls matmuls;  /* matmuls of a micro-step; the update has none */
    struct stats matmuls_ms; /* time of these matmuls, run in sequence */
    int64_t micro_steps;     /* per step */
};

struct bench_kernels_options {
    enum op op;  /* the operator to time; OP_COUNT: all operators, then the matmuls alone */
    int samples; /* per row */
    bool go_on;  /* take more samples while the order of a call's rows is uncertain (rounds.h) */
    double limit_ms; /* for all rows together; slow rows get fewer samples (rounds.h) */
    const struct machine *machine; /* bench_row.share is relative to its peaks */
    void (*each)(void *user, int done, int rows, const struct bench_call *c);
    void *user;
};

/* The engine must have the plans of training. This function initializes its weights and trains them
 * on random tokens. `ret` has no calls if the step does not have the operator. */
enum status bench_kernels_run(struct engine *e, const struct bench_kernels_options *o,
                              struct bench_kernels *ret, struct arena *a);

/* Finds the distinct calls of a training step that bench_kernels_run would time; runs nothing. */
void bench_calls_find(const struct program *program, enum op op, struct bench_kernels *ret,
                      struct arena *a);

#endif
