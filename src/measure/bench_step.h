/* bench_step.h - times whole training steps, and beside each the step's matrix products alone. */
#ifndef MEASURE_BENCH_STEP_H
#define MEASURE_BENCH_STEP_H

#include "base/stats.h"

struct engine;

struct bench_step {
    struct stats step;     /* ms: forward, backward, update */
    struct stats products; /* ms: the same plan's MATMUL and LINEAR kernels, nothing else */
    struct stats ratio;    /* step / products, pair by pair */
    double product_flops;  /* of one step */
    double first_ms;       /* the first step of all, before the warm-up */
};

/* Runs `warmup` and then `steps` pairs, step and products in turn, on random tokens. The engine holds
 * the plans GRAPH_MICRO and GRAPH_UPDATE and drawn weights; they are trained on noise and must not be
 * used afterwards. `each` is called after every pair (progress); may be NULL. */
enum status bench_step_run(struct engine *e, int warmup, int steps,
                           void (*each)(void *user, int done), void *user, struct bench_step *ret);

#endif
