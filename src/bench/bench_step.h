/* bench_step.h - times whole training steps, and beside each the step's matrix products alone. */
#ifndef BENCH_BENCH_STEP_H
#define BENCH_BENCH_STEP_H

#include "base/stats.h"
#include "graph/op.h"

struct engine;
struct plan;

struct bench_step {
    struct stats step;     /* ms: forward, backward, update */
    struct stats products; /* ms: the same plans' products, nothing else */
    struct stats ratio;    /* step / products, pair by pair */
    double product_flops;  /* of one step */
    double first_ms, loss; /* of the first step of all, before the warm-up */
};

/* A matrix product, whatever is done beside it. */
bool products_include(enum op op);

/* Runs the products of a plan, nothing else, on whatever its memory holds. */
struct products {
    int kernels;
    double flops;
};
enum status products_run(struct plan *p, struct products *ret);

/* Runs `warmup` and then `steps` pairs, step and products in turn, on random tokens. The engine holds
 * the plans of training, of one micro-step; its weights are drawn, trained on random tokens and must not be used
 * afterwards. `each` is called after every pair (progress); may be NULL. */
enum status bench_step_run(struct engine *e, int warmup, int steps,
                           void (*each)(void *user, int done), void *user, struct bench_step *ret);

#endif
