/* learner.h - a data set, an engine, and the step that brings them together.
 *
 * A step is gradient_accumulation_steps micro-steps and one update. It is a function of the weights,
 * the moments and the number of the iteration alone, and allocates nothing. */
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
};

struct learner_step {
    struct step_result result;
    double lr;
};

/* Opens the data set of the configuration and an engine with the plans of training and those of `more`
 * (a mask, 1 << kind); draws the weights. The configuration must outlive the learner. */
enum status learner_open(struct learner *l, const struct config *c, unsigned more, struct arena *a);
void learner_close(struct learner *l);

/* Starts the update of iteration `iter`, counted from 0. The device may still be at work when this returns. */
enum status learner_start(struct learner *l, int64_t iter);
/* Waits for iteration `iter`, the oldest that was started and not waited for. A loss or a gradient norm that is no number is
 * ST_NUMERIC and names the iteration; with check_nan, the operator too. */
enum status learner_finish(struct learner *l, int64_t iter, struct learner_step *ret_step);
/* How many iterations may be in flight while the next is started: with check_nan, none. */
int64_t learner_lookahead(const struct learner *l);

#endif
