/* learner.h - a data set, an engine, and the training step that uses both.
 *
 * A step is gradient_accumulation_steps micro-steps, distributed over the ranks, and one update. It
 * depends only on the weights, the moments and the iteration, and allocates nothing. */
#ifndef TRAIN_LEARNER_H
#define TRAIN_LEARNER_H

#include "engine/find_nan.h"
#include "train/batch.h"

struct learner {
    const struct config *config;
    struct dataset dataset;
    struct engine engine;
    /* private to learner.c */
    struct sequence step;
    struct loader loader;
    struct batch batch;
    struct plan_hooks hooks;
    float *results; /* of a step: for each rank the losses of its micro-steps, then its grad norm */
};

struct learner_step {
    struct step_result result;
    double lr;
};

/* Opens the data set of the configuration and an engine with the training plans and the plans of
 * `more` (a mask, 1 << kind), and initializes the weights. `communicator` is NULL if there is one
 * rank; it and the configuration must outlive the learner. All ranks must call the functions below
 * in the same order: rank 0 calls them, and its orders (ranks.h) make the other ranks follow. */
enum status learner_open(struct learner *l, const struct config *c, unsigned more,
                         struct communicator *communicator, struct arena *a);
void learner_close(struct learner *l);

/* Launches iteration `iter`, counted from 0; the device may still run it on return. */
enum status learner_start(struct learner *l, int64_t iter);
/* Waits for iteration `iter`, the oldest one in flight. ST_NUMERIC if the loss or the gradient norm
 * is NaN or infinite; the message names the iteration and, with check_nan, the operator. */
enum status learner_finish(struct learner *l, int64_t iter, struct learner_step *ret_step);
/* The number of iterations that may be in flight when the next is launched; 0 with check_nan. */
int64_t learner_lookahead(const struct learner *l);

#endif
