/* rundir.h - the files of a run directory besides the log and the checkpoints.
 *
 * docs/FORMATS.md describes every file. Each is written without a name or under a temporary one,
 * and then gets its name. A training claims its directory first and looks at it afterwards, and
 * reaches its files from the directory's descriptor. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "base/dir.h"
#include "engine/facts.h"
#include "result/run_summary.h"

/* A run directory in which no other process trains. */
struct rundir {
    struct dir dir;
    int made; /* how many directories of the path were created */
};

/* Opens a directory and locks out other trainings. `create`: creates it and its parents if they are
 * missing; else a missing one is ST_USAGE. */
enum status rundir_claim(struct rundir *r, const char *path, bool create);
/* Ends the claim. `unused`: removes the directories that were created for it, if they are empty. */
void rundir_release(struct rundir *r, bool unused);
/* Whether the directory contains a run. ST_USAGE if it contains only what Strobe did not write, or
 * if a file of the run is a link; ST_IO if it cannot be read. */
enum status rundir_look(const struct dir *dir, bool *ret_has_run);
/* The same by path, for a hint before a training looks itself. */
enum status rundir_look_at(const char *path, bool *ret_has_run);
/* The same; true if it cannot be read. */
bool rundir_has_run(const char *path);
/* Whether the summary states that all iterations were done. */
enum status rundir_is_complete(const struct dir *dir, bool *ret_complete);
/* The same, and the iteration of the newest checkpoint by its name alone; -1: there is none. */
enum status rundir_progress(const struct dir *dir, bool *ret_complete, int64_t *ret_last);
/* Removes the temporary files of killed writers. Needs the claim. */
void rundir_clean(const struct dir *dir);
/* ST_USAGE if rundir_clear would refuse: the directory is a link, or ckpt has a foreign file. */
enum status rundir_check_clear(const struct dir *dir);
/* Removes the files of a run, and nothing else. */
enum status rundir_clear(const struct dir *dir);
/* Removes the files that only a finished run has. */
enum status rundir_reopen(const struct dir *dir);

/* config.conf: all keys, to train the same run again. The identity of the run is its first line, a
 * comment. */
enum status rundir_write_config(const struct dir *dir, const struct config *c,
                                const char *identity);
/* Reads that identity; NULL: there is none. */
enum status rundir_identity(const struct dir *dir, struct arena *a, const char **ret);
/* plan.txt and plan.json. */
enum status rundir_write_plan(const struct dir *dir, const struct program *p);
enum status rundir_write_summary(const struct dir *dir, const struct run_summary *s);
void run_summary_print_json(const struct run_summary *s, struct str *out);
/* Writes a text file of the run. */
enum status rundir_write_text(const struct dir *dir, const char *name, const char *text);

#endif
