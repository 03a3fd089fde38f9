/* bench_step.h - times whole training steps, and after each step its matmuls alone. */
#ifndef BENCH_BENCH_STEP_H
#define BENCH_BENCH_STEP_H

#include "base/stats.h"
#include "graph/op.h"

struct engine;
struct plan;

struct bench_step {
    struct stats step;     /* ms: forward, backward, update */
    struct stats matmuls;  /* ms: only the matmuls of the same plans */
    struct stats ratio;    /* step / matmuls, per pair */
    double matmul_flops;   /* FLOPs of the matmuls of one step */
    double first_ms, loss; /* of the very first step */
};

/* True for matmuls, with or without an epilogue. */
bool matmuls_include(enum op op);

/* Runs only the matmuls of a plan, on the current contents of its memory. */
struct matmuls {
    int kernels;
    double flops;
};
enum status matmuls_run(struct plan *p, struct matmuls *ret);

/* Runs `warmup` and then `steps` pairs of a step and its matmuls, on random tokens. The engine must
 * have the plans of training; this function initializes its weights, which must not be used
 * afterwards. `each` (may be NULL) is called after every pair. After Ctrl-C the result is the pairs
 * so far; ST_INTERRUPTED: Ctrl-C came before the first pair was complete. */
enum status bench_step_run(struct engine *e, int warmup, int steps,
                           void (*each)(void *user, int done), void *user, struct bench_step *ret);

#endif
