/* trainer.h - the training loop (evaluate, step, log, save) and the run directory it writes.
 *
 * At iteration 0, at every multiple of eval_interval and after the last update the loss is
 * estimated; except at 0 a checkpoint is written too. Exactly max_iters updates are made. A run
 * that was stopped and resumed ends with the same bits as an uninterrupted one. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/host.h"
#include "base/log.h"
#include "base/turn.h"
#include "engine/facts.h"
#include "engine/gauge.h"
#include "train/checkpoint.h"
#include "train/evaluator.h"
#include "train/learner.h"
#include "train/ranks.h"
#include "train/rundir.h"
#include "train/runlog.h"
#include "train/saver.h"

struct environment;

enum { TRAINER_TIMED = 100000 }; /* maximum number of step times kept */

struct trainer {
    const struct config *config;
    struct config stored; /* in the run directory: with the absolute data_dir */
    struct crew ranks;
    struct learner learner;
    struct facts facts;
    struct run_summary summary;
    char why[400]; /* of the summary: no memory is needed to fill it */
    /* Measured peaks, set after trainer_begin: FLOP/s of the type of the matmuls, bytes/s of a copy
     * larger than the caches; 0: unknown, so log lines have no mfu, plan_flops and plan_bytes. */
    double peak_flops, peak_bytes;
    char disk_words[160]; /* a line about the bytes that the run will write */
    int64_t iter;         /* updates done */
    int64_t begun;        /* updates done before this process started */
    bool finished;        /* the run was already complete when it was opened */
    int turns;            /* socket that gives turns; TURN_NONE: work on. Set after trainer_begin */
    /* private to trainer.c */
    struct arena *arena;
    struct evaluator evaluator;
    struct weights_tensor *tensors;
    struct runlog log;
    struct rundir run;
    bool wrote;             /* files of the run were written or removed */
    struct checkpoint last; /* to continue from, if `found` */
    bool found;
    struct config *before; /* of the run to continue; NULL: unknown */
    const char *origin;    /* what the run begins with (train/origin.h); NULL: nothing */
    struct progress progress;
    struct gauge *gauge; /* NULL: the device has no telemetry, or sampling is disabled */
    bool working;        /* samples count now: an update after warm-up is running */
    int64_t gauged;      /* number of updates that the telemetry summary covers */
    const char *config_text, *identity; /* as they are stored */
    double *step_ms;                    /* times of this process's updates, at most TRAINER_TIMED */
    /* Since the start, or since it got its turn; and the work before. */
    int64_t start_ns;
    struct host_work start_work, work;
    double work_s;
    struct turn_grant turn;            /* the current turn */
    int64_t turn_first;                /* the iteration at which it began */
    int64_t saved;                     /* iteration of the last checkpoint that is there, or -1 */
    struct saver saver;                /* of the checkpoint that is being written */
    struct checkpoint_written written; /* the one before */
    int64_t claimed_ns;                /* when the training began to claim its directory */
    int64_t wall_ns[WALL_PARTS];
    bool log_failed;      /* the last checkpoint is newer than the log on the disk */
    const char *run_word; /* the directory, as a shell reads it */
    const char *advice;   /* of the sentence for lack of memory */
    bool savable;         /* only a file of the log or the data failed: the weights can be saved */
};

struct trainer_options {
    bool overwrite;                        /* remove an existing run */
    const struct environment *environment; /* for env.json; NULL: do not write it */
};

/* Claims the run directory, then looks at it: for `resume` it finds the last checkpoint. ST_USAGE
 * if it holds a run, unless `resume` or `overwrite` is set. Changes nothing but removes what killed
 * writers left. In trainer_open.c, like the next three functions. */
enum status trainer_claim(struct trainer *t, const char *out_dir, bool resume, bool overwrite,
                          struct arena *a);
/* After trainer_claim: opens the data set and the engine, and starts the run in the directory or
 * continues it. The configuration and the arena must outlive the trainer. Closes it on failure. */
enum status trainer_begin(struct trainer *t, const struct config *c,
                          const struct environment *environment);
/* Both. */
enum status trainer_open(struct trainer *t, const struct config *c, const struct trainer_options *o,
                         struct arena *a);
/* Trains to max_iters. On Ctrl-C and the other signals of base/interrupt.h it finishes the step,
 * saves, and returns ST_INTERRUPTED with the command that continues the run. If the log cannot be
 * written, the data cannot be read, or the run directory was moved, it saves too and returns that
 * error. Writes summary.json in any case, and samples.txt at the end. */
enum status trainer_run(struct trainer *t);
void trainer_close(struct trainer *t);

#endif
