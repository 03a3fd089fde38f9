/* rundir.h - the run directory: what is in it besides the log and the checkpoints.
 *
 * docs/FORMATS.md has every file. Each is written whole, under a temporary name, and renamed. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "train/facts.h"
#include "train/gauge.h"

/* How a run went: summary.json. Losses are NAN where there was no evaluation. */
struct run_summary {
    int64_t iters;
    double seconds; /* of training and evaluation; NAN of a run that was resumed: the log tells */
    double ms_median, ms_std, tokens_per_s; /* of a step, without the first ones */
    double final_train_loss, final_val_loss, best_val_loss;
    int64_t best_iter;
    double others_busy;    /* share of the processors that other programs took; NAN: unknown */
    int64_t peak_measured; /* bytes that the plans' memory took, libraries' own included */
    struct gauge_summary gauges; /* of training alone; no samples: not known */
    double joules_per_token;     /* NAN: unknown */
    int64_t peak_rss; /* bytes of the whole process, its program and libraries included */
    bool complete;    /* max_iters were reached */
};

/* True if the directory holds a run, however little of one. */
bool rundir_has_run(const char *dir);
/* Keeps other trainings out of the directory until the descriptor is closed, if only by a kill. */
enum status rundir_lock(const char *dir, int *ret_fd);
/* True if its summary says that all iterations were made. */
bool rundir_is_complete(const char *dir);
/* Removes the files of a run, and nothing else. */
enum status rundir_clear(const char *dir);
/* Removes what only a run that ended has. */
enum status rundir_reopen(const char *dir);

/* config.conf: every key, ready to be trained from again; a resumed run is not one that starts so. */
enum status rundir_write_config(const char *dir, const struct config *c);
/* plan.txt and plan.json. */
enum status rundir_write_plan(const char *dir, const struct program *p);
enum status rundir_write_summary(const char *dir, const struct run_summary *s);
void run_summary_print_json(const struct run_summary *s, struct str *out);
/* Any text file of the run. */
enum status rundir_write_text(const char *dir, const char *name, const char *text);

#endif
