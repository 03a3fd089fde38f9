/* runlog.h - log.jsonl of a run: one JSON object per line, for each step, each evaluation and each
 * telemetry sample of the device.
 *
 * Each line is written in one call, so a killed run leaves at most its last line truncated. Logging
 * allocates nothing. docs/FORMATS.md describes the fields. */
#ifndef TRAIN_RUNLOG_H
#define TRAIN_RUNLOG_H

#include "base/dir.h"

enum { RUNLOG_PENDING = 8192 };

struct runlog {
    char path[DIR_NAME];
    /* private to runlog.c */
    int fd, pending; /* bytes that a failed write left */
    char pending_text[RUNLOG_PENDING];
};

struct runlog_step {
    int64_t iter;
    double loss, lr, grad_norm; /* NaN and infinity are written as null */
    double ms, tokens_per_s;
    double mfu; /* a fraction; 0 or NAN: unknown, the line lacks it */
    /* By the plan, an estimate: FLOPs and bytes of the step over the measured peaks, as shares;
     * 0: unknown, no key. */
    double plan_flops, plan_bytes;
};

struct runlog_eval {
    int64_t iter;
    double train_loss, val_loss;
};

/* A turn of `strobe compare`: `iters` iterations, the last of which is `iter`. */
struct runlog_turn {
    int64_t iter, of, turn, iters;
    double ms; /* median of its iterations */
};

struct gauge_reading;

/* Opens the log for appending. First drops lines of iteration `first_iter` and later, and lines
 * that are not JSON objects, so that the log equals that of an uninterrupted run. The old log is
 * kept until the shorter one replaces it. With first_iter = 0 a new log is started. A log that
 * cannot be read is ST_IO, and stays as it is. */
enum status runlog_open(struct runlog *l, const struct dir *at, const char *name,
                        int64_t first_iter);
enum status runlog_step(struct runlog *l, const struct runlog_step *s);
enum status runlog_eval(struct runlog *l, const struct runlog_eval *e);
enum status runlog_turn(struct runlog *l, const struct runlog_turn *t);
/* A telemetry sample; unknown values have no key. */
enum status runlog_sample(struct runlog *l, const struct gauge_reading *r);
/* Writes what earlier calls could not: after a failure, lines wait in memory and precede the next
 * one. The line that no longer fits there is lost. */
enum status runlog_flush(struct runlog *l);
/* Makes the written lines survive a power failure. */
enum status runlog_sync(const struct runlog *l);
void runlog_close(struct runlog *l);

#endif
