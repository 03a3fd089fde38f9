/* runlog.h - log.jsonl of a run: one JSON object a line, for each step, each evaluation and each reading of the device's gauges.
 *
 * A line reaches the file in one write, so a killed run leaves at most its last line cut. Logging
 * allocates nothing. docs/FORMATS.md has the fields. */
#ifndef TRAIN_RUNLOG_H
#define TRAIN_RUNLOG_H

#include "base/base.h"

struct runlog {
    char path[1024];
    int fd; /* private to runlog.c */
};

struct runlog_step {
    int64_t iter;
    double loss, lr, grad_norm; /* no number is written as null */
    double ms, tokens_per_s;
};

struct runlog_eval {
    int64_t iter;
    double train_loss, val_loss;
};

struct gauge_reading;

/* Opens for appending. Lines of iteration `first_iter` and later are dropped first, and so is a line
 * that is no JSON object: the log is then what a run that was never interrupted would have. The old log
 * stands until the shorter one replaces it. 0 begins a new log. */
enum status runlog_open(struct runlog *l, const char *path, int64_t first_iter);
enum status runlog_step(struct runlog *l, const struct runlog_step *s);
enum status runlog_eval(struct runlog *l, const struct runlog_eval *e);
/* What the device said of itself; what is not known has no key. */
enum status runlog_sample(struct runlog *l, const struct gauge_reading *r);
/* What was written survives a loss of power. */
enum status runlog_sync(const struct runlog *l);
void runlog_close(struct runlog *l);

#endif
