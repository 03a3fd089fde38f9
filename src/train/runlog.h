/* runlog.h - log.jsonl of a run: one JSON object per line, for every log_interval-th step, each
 * evaluation, each turn and each telemetry sample of the device.
 *
 * Each line is written in one call, so a killed run leaves at most its last line truncated. Logging
 * allocates nothing. docs/FORMATS.md describes the fields. */
#ifndef TRAIN_RUNLOG_H
#define TRAIN_RUNLOG_H

#include "base/file.h"
#include "result/run_log.h"

enum { RUNLOG_PENDING = 8192 };

struct runlog {
    char path[FILE_LONGEST + 1];
    /* private to runlog.c */
    int fd, pending; /* pending: bytes not written yet, after a failed write */
    char pending_text[RUNLOG_PENDING];
};

/* Opens the log for appending. First drops lines of iteration `first_iter` and later, and lines
 * that are not JSON objects with an iteration, so that the log equals the log of an uninterrupted
 * run. The shorter log replaces the old one atomically. If the log cannot be read, this fails and
 * leaves the file unchanged. first_iter = 0 empties the log. */
enum status runlog_open(struct runlog *l, const char *path, int64_t first_iter);
enum status runlog_step(struct runlog *l, const struct run_step *s);
enum status runlog_eval(struct runlog *l, const struct run_eval *e);
enum status runlog_turn(struct runlog *l, const struct run_turn *t);
enum status runlog_wall(struct runlog *l, const struct run_wall *w);
/* A telemetry sample; unknown values have no key. */
enum status runlog_sample(struct runlog *l, const struct gauge_reading *r);
/* Writes the lines that earlier calls could not write. After a failure, lines wait in memory until
 * the next write; lines that no longer fit there are lost. */
enum status runlog_flush(struct runlog *l);
/* Makes the written lines survive a power failure. */
enum status runlog_sync(const struct runlog *l);
void runlog_close(struct runlog *l);

#endif
