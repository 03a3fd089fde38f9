/* trainer.h - the loop: evaluate, step, log, save; and the run directory that it leaves.
 *
 * At iteration 0, at every multiple of eval_interval and after the last update the loss is estimated and,
 * but for iteration 0, a checkpoint written. Exactly max_iters updates are made. A run that was stopped,
 * in whatever way, and goes on with init_from = resume ends in the same bits as one that never was. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/host.h"
#include "base/log.h"
#include "engine/facts.h"
#include "engine/gauge.h"
#include "train/checkpoint.h"
#include "train/evaluator.h"
#include "train/learner.h"
#include "train/rundir.h"
#include "train/runlog.h"

struct environment;

enum { TRAINER_TIMED = 100000 }; /* updates whose times are kept */

struct trainer {
    const struct config *config;
    struct learner learner;
    struct facts facts;
    struct run_summary summary;
    int64_t iter;  /* updates made */
    int64_t begun; /* updates that this program found done */
    bool finished; /* the run was complete when it was opened: there is nothing to do */
    /* private to trainer.c */
    struct arena *arena;
    struct evaluator evaluator;
    struct checkpoint_tensor *tensors;
    struct runlog log;
    int lock; /* descriptor, see rundir_lock; -1: none */
    struct progress progress;
    struct gauge *gauge; /* NULL: the device is not asked, or says nothing */
    bool working;        /* what is sampled now counts: updates, but for the first ones */
    int64_t gauged;      /* updates that its summary is of */
    const char *config_text;
    double *step_ms; /* of the updates that this program made, up to TRAINER_TIMED */
    int64_t start_ns;
    struct host_work start_work;
    int64_t saved; /* iteration of the last checkpoint, -1 */
};

struct trainer_options {
    bool overwrite;                        /* a run that is there already is removed */
    const struct environment *environment; /* for env.json; NULL: none is written */
};

/* Opens the data set and the engine, begins the run directory or takes it up again (init_from). A
 * directory that holds a run is refused, unless it is to be overwritten. The configuration and the arena
 * must outlive the trainer. In trainer_open.c, as trainer_close. */
enum status trainer_open(struct trainer *t, const struct config *c, const struct trainer_options *o,
                         struct arena *a);
/* Trains to max_iters. Ctrl-C: finishes the step, saves, and says how to go on, ST_INTERRUPTED. Writes
 * summary.json in any case, and samples.txt at the end. */
enum status trainer_run(struct trainer *t);
void trainer_close(struct trainer *t);

#endif
