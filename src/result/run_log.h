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

/* Where the wall time of a training went: from the claim of its directory to the first iteration;
 * updates; evaluations; waiting for checkpoints to be written; waiting for turns; the texts that it
 * writes at its end; all else. */
enum wall_part {
    WALL_STARTUP,
    WALL_STEPS,
    WALL_EVALUATION,
    WALL_CHECKPOINTS,
    WALL_TURNS,
    WALL_SAMPLES,
    WALL_OTHER,
    WALL_PARTS
};
/* Their fields. */
#define WALL_FIELDS(X)                                                                          \
    X("startup", WALL_STARTUP), X("steps", WALL_STEPS), X("evaluation", WALL_EVALUATION),       \
        X("checkpoints", WALL_CHECKPOINTS), X("turns", WALL_TURNS), X("samples", WALL_SAMPLES), \
        X("other", WALL_OTHER)

/* The last line of a process, `iter` being the last iteration. */
struct run_wall {
    int64_t iter;
    double seconds[WALL_PARTS];
};

enum { GAUGE_REASONS = 8 };
enum gauge_value {
    GAUGE_UTILIZATION,
    GAUGE_CLOCK,
    GAUGE_POWER,
    GAUGE_MEMORY,
    GAUGE_TEMPERATURE,
    GAUGE_MEMORY_UTILIZATION,
    GAUGE_SM,
    GAUGE_TENSOR,
    GAUGE_DRAM,
    GAUGE_VALUES
};
/* Their fields. */
#define GAUGE_FIELDS(X)                                                                          \
    X("utilization", GAUGE_UTILIZATION), X("clock_mhz", GAUGE_CLOCK), X("power_w", GAUGE_POWER), \
        X("memory_bytes", GAUGE_MEMORY), X("temperature_c", GAUGE_TEMPERATURE),                  \
        X("memory_utilization", GAUGE_MEMORY_UTILIZATION), X("sm_active", GAUGE_SM),             \
        X("tensor_active", GAUGE_TENSOR), X("dram_active", GAUGE_DRAM)

/* A telemetry sample: an interval, which ends at `iter`, and the means of what was sampled in it.
 * Unknown values are NAN, and have no key. */
struct gauge_reading {
    int64_t iter;
    double ms;                           /* its length */
    bool steady;                         /* during training, after the first steps */
    double value[GAUGE_VALUES];          /* means over time */
    double clock_max_mhz, power_limit_w; /* at its end */
    double throttled;                    /* fraction of the time in which the clock was throttled */
    int throttle;                        /* all reasons of that time (backend/sample.h); not read */
    double seconds; /* read: from the begin of the first reading to the end of this one */
};

extern const struct record *const run_step_record,
    *const run_eval_record, *const run_turn_record, *const run_wall_record,
                                                        *const gauge_reading_record;

#endif
