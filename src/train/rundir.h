/* rundir.h - the files of a run directory besides the log and the checkpoints.
 *
 * docs/FORMATS.md describes every file. A training claims (locks) its directory before reading
 * it. */
#ifndef TRAIN_RUNDIR_H
#define TRAIN_RUNDIR_H

#include "base/lock.h"
#include "engine/facts.h"
#include "result/run_summary.h"

/* A run directory in which no other process trains. */
struct rundir {
    struct lock lock; /* lock.path is the path of the directory */
    int made;         /* how many directories of the path rundir_claim created */
};

/* Opens a directory and locks out other trainings. If it is missing, creates it and its parents
 * with `create`, else fails with ST_USAGE. */
enum status rundir_claim(struct rundir *r, const char *path, bool create);
/* Ends the claim. With `unused`, removes the directories that rundir_claim created, if empty. */
void rundir_release(struct rundir *r, bool unused);
/* Whether the directory contains a run. ST_USAGE if it contains only files that Strobe did not
 * write, or if a file of the run is a link. */
enum status rundir_look(const char *dir, bool *ret_has_run);
/* Like rundir_look, but true if the directory cannot be read. */
bool rundir_has_run(const char *dir);
/* Whether the summary states that all iterations were done. */
enum status rundir_is_complete(const char *dir, bool *ret_complete);
/* Also the iteration of the newest checkpoint, from its folder's name; -1 if there is none. */
enum status rundir_progress(const char *dir, bool *ret_complete, int64_t *ret_last);
/* Removes the temporary files of killed writers. Needs the claim. */
void rundir_clean(const char *dir, struct arena *a);
/* ST_USAGE if rundir_clear would refuse: the directory is a link, or ckpt has a foreign file. */
enum status rundir_check_clear(const char *dir);
/* Removes the files of a run, and nothing else. */
enum status rundir_clear(const char *dir);
/* Removes the files that only a completed run has, so that the run can continue. */
enum status rundir_reopen(const char *dir);

/* Writes config.conf with all keys. Its first line is a comment with the identity of the run. */
enum status rundir_write_config(const char *dir, const struct config *c, const char *identity);
/* Reads the identity from config.conf; NULL if there is none. */
enum status rundir_identity(const char *dir, struct arena *a, const char **ret);
/* Writes plan.txt and plan.json. */
enum status rundir_write_plan(const char *dir, const struct program *p);
enum status rundir_write_summary(const char *dir, const struct run_summary *s);
void run_summary_print_json(const struct run_summary *s, struct str *out);
/* Writes a text file of the run. */
enum status rundir_write_text(const char *dir, const char *name, const char *text);

#endif
