/* bench_kernels.h - times every kernel row that accepts a call of a training step, on that call.
 *
 * Runs one training step on random tokens. At the first occurrence of each distinct call, every row
 * that accepts it runs on copies of the call's inputs, in turn, so all rows are timed on real data.
 * On a CPU, data that fits in a cache stays there from run to run. On a GPU the runs cycle through
 * copies of inputs and outputs, enough to exceed twice its L2 but at most 64, and all runs of a
 * sample are one captured graph, so the host does not slow them (stopwatch.h). */
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
    const char *left_out; /* why it was not timed; NULL: it was */
    struct stats ms;      /* per call */
    /* Beside the fastest row of the call, which has VERDICT_NONE; `fastest`: it is that one, and
     * there are others. */
    struct verdict order;
    bool fastest;
    double flops, bytes; /* per second */
    /* Fraction of the matmul peak or of copy bandwidth, whichever is larger. Above 1 the peak was
     * measured too low, or the kernel only reads. */
    double share;
    bool by_bytes; /* `share` is of the copy bandwidth, not of the matmul peak */
};

/* Calls of one operator with equal types and attributes, except the site of a dropout. */
struct bench_call {
    enum graph_kind kind;
    int step; /* first occurrence in its plan */
    enum op op;
    int64_t per_step; /* executions per training step */
    struct cost cost;
    enum dtype dtype;                 /* of its first float input, else of its output */
    enum machine_precision precision; /* the peak that its arithmetic is compared with */
    const char *shape;                /* "768 x 384 x 128 tb", "f32 (12,64,512)" */
    const char *where;                /* "h.0.attn.c_attn" */
    struct bench_row *row;
    int rows;
    double ms_per_step; /* of the selected row: median x per_step */
};

struct bench_kernels {
    struct bench_call *call; /* longest per step first */
    int calls, rows;
    struct matmuls matmuls;  /* matmuls of a micro-step; the update has none */
    struct stats matmuls_ms; /* of these matmuls, one after the other */
    int64_t micro_steps;     /* per step */
};

struct bench_kernels_options {
    enum op op;      /* the operator to time; OP_COUNT: all, and then the matmuls alone */
    int samples;     /* per row */
    bool go_on;      /* more, while the order of the rows of a call is uncertain (rounds.h) */
    double limit_ms; /* for all rows together; slow ones give fewer samples (rounds.h) */
    const struct machine *machine; /* its peaks are the base of the shares */
    void (*each)(void *user, int done, int rows, const struct bench_call *c);
    void *user;
};

/* The engine holds the plans of training; its weights are initialised and trained on random tokens.
 * There are no calls if the step has no such operator. */
enum status bench_kernels_run(struct engine *e, const struct bench_kernels_options *o,
                              struct bench_kernels *ret, struct arena *a);

/* Finds the distinct calls of a training step that bench_kernels_run would time; runs nothing. */
void bench_calls_find(const struct program *program, enum op op, struct bench_kernels *ret,
                      struct arena *a);

#endif
