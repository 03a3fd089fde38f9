/* rundir.h - the files of a run directory besides the log and the checkpoints.
 *
 * docs/FORMATS.md describes every file. A training claims its directory first and looks at it
 * afterwards. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "base/lock.h"
#include "engine/facts.h"
#include "result/run_summary.h"

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
void run_summary_print_json(const struct run_summary *s, struct str *out);
/* Writes a text file of the run. */
enum status rundir_write_text(const char *dir, const char *name, const char *text);

#endif
