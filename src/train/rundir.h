/* rundir.h - the files of a run directory besides the log and the checkpoints.
 *
 * docs/FORMATS.md describes every file. Each is written under a temporary name and renamed. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "engine/facts.h"
#include "engine/gauge.h"

/* The result of a run: summary.json. Losses are NAN if there was no evaluation. */
struct run_summary {
    int64_t iters;
    /* training and evaluation time; NAN for a resumed run, whose times are in the log */
    double seconds;
    double ms_median, ms_std, tokens_per_s; /* per step, excluding the first ones */
    double final_train_loss, final_val_loss, best_val_loss;
    int64_t best_iter;
    double others_busy;    /* fraction of the processors that other programs used; NAN: unknown */
    int64_t peak_measured; /* measured bytes of the plans' memory, including library allocations */
    struct gauge_summary gauges; /* telemetry during training only; no samples: unknown */
    double joules_per_token;     /* NAN: unknown */
    int64_t peak_rss;            /* of the whole process, including its code and libraries */
    bool complete;               /* max_iters was reached */
};

/* True if the directory contains any file of a run. */
bool rundir_has_run(const char *dir);
/* Locks out other training runs until the descriptor is closed or the process ends. */
enum status rundir_lock(const char *dir, int *ret_fd);
/* True if the summary states that all iterations were done. */
bool rundir_is_complete(const char *dir);
/* Removes the files of a run, and nothing else. */
enum status rundir_clear(const char *dir);
/* Removes the files that only a finished run has. */
enum status rundir_reopen(const char *dir);

/* config.conf: all keys, to train the same run again; init_from is written as "scratch". */
enum status rundir_write_config(const char *dir, const struct config *c);
/* plan.txt and plan.json. */
enum status rundir_write_plan(const char *dir, const struct program *p);
enum status rundir_write_summary(const char *dir, const struct run_summary *s);
void run_summary_print_json(const struct run_summary *s, struct str *out);
/* Writes a text file of the run. */
enum status rundir_write_text(const char *dir, const char *name, const char *text);

#endif
