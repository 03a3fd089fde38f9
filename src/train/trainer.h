/* trainer.h - the training loop (evaluate, step, log, save) and the run directory it writes.
 *
 * At iteration 0, at every multiple of eval_interval and after the last update the loss is
 * estimated; except at 0 a checkpoint is written too. Exactly max_iters updates are made. A run
 * that was stopped and resumed ends with the same bits as an uninterrupted one. */
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

enum { TRAINER_TIMED = 100000 }; /* maximum number of step times kept */

struct trainer {
    const struct config *config;
    struct learner learner;
    struct facts facts;
    struct run_summary summary;
    int64_t iter;  /* updates done */
    int64_t begun; /* updates done before this process started */
    bool finished; /* the run was already complete when it was opened */
    /* private to trainer.c */
    struct arena *arena;
    struct evaluator evaluator;
    struct weights_tensor *tensors;
    struct runlog log;
    int lock; /* file descriptor, see rundir_lock; -1: none */
    struct progress progress;
    struct gauge *gauge; /* NULL: the device has no telemetry, or sampling is disabled */
    bool working;        /* samples count now: an update after warm-up is running */
    int64_t gauged;      /* number of updates that the telemetry summary covers */
    const char *config_text;
    double *step_ms; /* times of this process's updates, at most TRAINER_TIMED */
    int64_t start_ns;
    struct host_work start_work;
    int64_t saved; /* iteration of the last checkpoint, or -1 */
};

struct trainer_options {
    bool overwrite;                        /* remove an existing run */
    const struct environment *environment; /* for env.json; NULL: do not write it */
};

/* Opens the data set and the engine, and creates the run directory or continues the run in it
 * (init_from). ST_USAGE if the directory holds a run, unless `overwrite` is set. The configuration
 * and the arena must outlive the trainer. In trainer_open.c, like trainer_close. */
enum status trainer_open(struct trainer *t, const struct config *c, const struct trainer_options *o,
                         struct arena *a);
/* Trains to max_iters. On Ctrl-C it finishes the step, saves, and returns ST_INTERRUPTED with the
 * command that continues the run. Writes summary.json in any case, and samples.txt at the end. */
enum status trainer_run(struct trainer *t);
void trainer_close(struct trainer *t);

#endif
