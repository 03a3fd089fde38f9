/* trainer.h - the training loop (evaluate, step, log, save) and the run directory it writes.
 *
 * The loss is estimated at iteration 0, at every multiple of eval_interval and after the last
 * update; each time, except at 0, a checkpoint is written. A run makes exactly max_iters updates. A
 * run that was stopped and resumed ends bitwise equal to an uninterrupted run, on a CPU if the
 * number of threads is the same. */
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
    struct config stored; /* the configuration in the run directory, with absolute paths */
    struct crew ranks;
    struct learner learner;
    struct facts facts;
    struct run_summary summary;
    char why[400]; /* buffer of summary.why, so that an out-of-memory error can be recorded */
    /* Measured peaks, set after trainer_begin: FLOP/s of the matmuls' data type, bytes/s of a copy
     * larger than the caches. 0: unknown; log lines then lack mfu, plan_flops and plan_bytes. */
    double peak_flops, peak_bytes;
    char disk_words[160]; /* a line about the bytes that the run will write */
    int64_t iter;         /* updates done */
    int64_t begun;        /* updates done before this process started */
    bool finished;        /* the run was already complete when it was opened */
    int turns; /* socket for turns, or TURN_NONE (base/turn.h); set after trainer_begin */
    /* private to trainer.c */
    struct arena *arena;
    struct evaluator evaluator;
    struct weights_tensor *tensors;
    struct runlog log;
    struct rundir run;
    bool wrote;             /* files of the run were written or removed */
    struct checkpoint last; /* the checkpoint to continue from, if `found` */
    bool found;
    struct config *before; /* configuration of the run to continue; NULL: unknown */
    const char *origin;    /* the model that the run starts from (train/origin.h); NULL: none */
    struct progress progress;
    struct gauge *gauge; /* NULL: the device has no telemetry, or sampling is disabled */
    bool working;        /* telemetry samples count: an update after warm-up is running */
    int64_t gauged;      /* number of updates that the telemetry summary covers */
    const char *config_text, *identity; /* stored in checkpoints */
    double *step_ms;                    /* times of this process's updates, at most TRAINER_TIMED */
    /* start_*: at the start, or at the start of this turn; work, work_s: sums of earlier turns. */
    int64_t start_ns;
    struct host_work start_work, work;
    double work_s;
    struct turn_grant turn;            /* the current turn */
    int64_t turn_first;                /* the iteration at which this turn began */
    int64_t saved;                     /* iteration of the last complete checkpoint, or -1 */
    struct saver saver;                /* writes the present checkpoint */
    struct checkpoint_written written; /* the previous checkpoint */
    int64_t claimed_ns;                /* when the training began to claim its directory */
    int64_t wall_ns[WALL_PARTS];
    bool log_failed;      /* the last checkpoint is newer than the log on the disk */
    const char *run_word; /* the run directory, quoted for a shell */
    const char *advice;   /* for heap_advise */
    bool savable;         /* only the log or the data failed, so the weights can be saved */
};

struct trainer_options {
    bool overwrite;                        /* remove an existing run */
    const struct environment *environment; /* for env.json; NULL: do not write it */
};

/* Claims the run directory; with `resume`, finds the last checkpoint. ST_USAGE if the directory has
 * a run, unless `resume` or `overwrite` is set. Changes nothing, but removes temporary files of
 * killed writers. In trainer_open.c, like the next two functions and trainer_close. */
enum status trainer_claim(struct trainer *t, const char *out_dir, bool resume, bool overwrite,
                          struct arena *a);
/* After trainer_claim, and after the number of threads was set (engine/crew.h): opens the data set
 * and the engine, and starts or continues the run in the directory. The configuration and the arena
 * must outlive the trainer. On failure, closes it. */
enum status trainer_begin(struct trainer *t, const struct config *c,
                          const struct environment *environment);
/* trainer_claim, crew_set_threads and trainer_begin. */
enum status trainer_open(struct trainer *t, const struct config *c, const struct trainer_options *o,
                         struct arena *a);
/* Trains to max_iters. On Ctrl-C and the other signals of base/interrupt.h, finishes the step,
 * saves, and returns ST_INTERRUPTED with the command that continues the run. If the log cannot be
 * written or the data cannot be read, saves and returns that error; ST_ABSENT, without saving, if
 * the run directory was moved. Writes summary.json in any case, and samples.txt at the end. */
enum status trainer_run(struct trainer *t);
void trainer_close(struct trainer *t);

#endif
