/* run_log.h - lines of log.jsonl (docs/FORMATS.md), written and read by one table for each kind.
 *
 * `iter`: the iteration. Read: what is missing is NAN. */
#ifndef RESULT_RUN_LOG_H
#define RESULT_RUN_LOG_H

#include "base/base.h"

struct record;

enum { RUN_VERSION = 1 }; /* of log.jsonl, plan.json and summary.json */

struct run_step {
    int64_t iter;
    double loss, lr, grad_norm; /* NaN and infinity are written as null */
    double ms, tokens_per_s;
    double mfu; /* a fraction; 0 or NAN: unknown, the line lacks it */
    /* By the plan, an estimate: FLOPs and bytes of the step over the measured peaks, as shares;
     * 0 or NAN: unknown, no key. */
    double plan_flops, plan_bytes;
};

struct run_eval {
    int64_t iter;
    double train_loss, val_loss;
};

/* A turn of `strobe compare`: `iters` iterations, the last of which is `iter`. */
struct run_turn {
    int64_t iter;
    double of, turn, iters;
    double ms; /* median of its iterations */
};

extern const struct record *const run_step_record, *const run_eval_record, *const run_turn_record;

#endif
