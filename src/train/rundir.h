/* rundir.h - the files of a run directory besides the log and the checkpoints.
 *
 * docs/FORMATS.md describes every file. A training claims its directory first and looks at it
 * afterwards. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "base/lock.h"
#include "engine/facts.h"
#include "engine/gauge.h"

/* Where the wall time of a training went: from the claim of its directory to the first iteration;
 * updates; evaluations; waiting for checkpoints to be written; waiting for turns; all else. */
enum wall_part {
    WALL_STARTUP,
    WALL_STEPS,
    WALL_EVALUATION,
    WALL_CHECKPOINTS,
    WALL_TURNS,
    WALL_OTHER,
    WALL_PARTS
};
extern const char *const wall_words[WALL_PARTS];

/* The result of a run: summary.json. Losses are NAN if there was no evaluation. */
struct run_summary {
    int64_t iters;
    /* training and evaluation time; NAN for a resumed run, whose times are in the log */
    double seconds;
    double wall_s[WALL_PARTS]; /* of this process; they add up to all of its wall time */
    double ms_median, ms_std, tokens_per_s; /* per step, excluding the first ones */
    double mfu;                       /* from ms_median; NAN: the peak of this machine is unknown */
    double run_tokens_per_s, run_mfu; /* all tokens of these steps over all of their time */
    double final_train_loss, final_val_loss, best_val_loss;
    int64_t best_iter;
    double others_busy;    /* fraction of the processors that other programs used; NAN: unknown */
    int64_t peak_measured; /* measured bytes of the plans' memory, including library allocations */
    struct gauge_summary gauges; /* telemetry during training only; no samples: unknown */
    double joules_per_token;     /* NAN: unknown */
    int64_t peak_rss;            /* of the whole process, including its code and libraries */
    bool complete;               /* max_iters was reached */
    /* How it ended: "finished", "nan", "interrupted", "no memory", "no disk", "failed"; and the
     * message of the failure, "" if the first says it all. No memory is needed to fill them. */
    const char *end;
    char why[400];
};

/* A run directory in which no other process trains. */
struct rundir {
    struct lock lock; /* its path is that of the directory */
    int made;         /* how many directories of the path were created */
};

/* Opens a directory and locks out other trainings. `create`: creates it and its parents if they are
 * missing; else a missing one is ST_USAGE. */
enum status rundir_claim(struct rundir *r, const char *path, bool create);
/* Ends the claim. `unused`: removes the directories that were created for it, if they are empty. */
void rundir_release(struct rundir *r, bool unused);
/* Whether the directory contains a run. ST_USAGE if it contains only what Strobe did not write, or
 * if a file of the run is a link. */
enum status rundir_look(const char *dir, bool *ret_has_run);
/* The same; true if it cannot be read. */
bool rundir_has_run(const char *dir);
/* Whether the summary states that all iterations were done. */
enum status rundir_is_complete(const char *dir, bool *ret_complete);
/* The same, and the iteration of the newest checkpoint by its name alone; -1: there is none. */
enum status rundir_progress(const char *dir, bool *ret_complete, int64_t *ret_last);
/* Removes the temporary files of killed writers. Needs the claim. */
void rundir_clean(const char *dir, struct arena *a);
/* ST_USAGE if rundir_clear would refuse: the directory is a link, or ckpt has a foreign file. */
enum status rundir_check_clear(const char *dir);
/* Removes the files of a run, and nothing else. */
enum status rundir_clear(const char *dir);
/* Removes the files that only a finished run has. */
enum status rundir_reopen(const char *dir);

/* config.conf: all keys, to train the same run again. The identity of the run is its first line, a
 * comment. */
enum status rundir_write_config(const char *dir, const struct config *c, const char *identity);
/* Reads that identity; NULL: there is none. */
enum status rundir_identity(const char *dir, struct arena *a, const char **ret);
/* plan.txt and plan.json. */
enum status rundir_write_plan(const char *dir, const struct program *p);
enum status rundir_write_summary(const char *dir, const struct run_summary *s);
/* "35.1 s = startup 1.2 + steps 16.9 + evaluation 8.1 + checkpoints 0.4 + other 8.5" */
enum { WALL_TEXT = 200 };
const char *run_summary_wall(const struct run_summary *s, char buffer[WALL_TEXT]);
void run_summary_print_json(const struct run_summary *s, struct str *out);
/* Writes a text file of the run. */
enum status rundir_write_text(const char *dir, const char *name, const char *text);

#endif
