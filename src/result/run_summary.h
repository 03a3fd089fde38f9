/* run_summary.h - the result of a run: summary.json (docs/FORMATS.md), written and read by one
 * table. Unknown numbers are NAN. */
#ifndef RESULT_RUN_SUMMARY_H
#define RESULT_RUN_SUMMARY_H

#include "base/record.h"
#include "result/run_log.h"

struct gauge_range {
    double mean, min, max;
};

/* Telemetry of a device, over all intervals of work. */
struct gauge_summary {
    double seconds;
    int samples;                            /* 0: nothing is known */
    double sample_ms;                       /* mean time to take one */
    int64_t interval_ms;                    /* of gauge_open; not in the file */
    struct gauge_range value[GAUGE_VALUES]; /* the mean of power is energy over time */
    double clock_max_mhz, power_limit_w;
    double energy_j; /* the device's counter; without one, power times time */
    double joules_per_token;
    double throttled; /* fraction of the time */
    /* The same for each reason: "power limit". "set clock": on purpose, it does not count. */
    struct figure by[GAUGE_REASONS];
    int reasons;
    double others; /* fraction of the time with other programs on a GPU */
    int other;     /* process id of one of them; 0: there was none; not in the file */
};

/* Losses are NAN if there was no evaluation. */
struct run_summary {
    int64_t iters;
    double seconds; /* training and evaluation; NAN for a resumed run, whose times are in the log */
    /* From the claim of the directory of the run to this summary. */
    double wall_s[WALL_PARTS];
    double ms_median, ms_std, tokens_per_s; /* per step, excluding the first ones */
    double mfu; /* from ms_median, of the measured peak; above 1: that is too low */
    double run_tokens_per_s, run_mfu; /* all tokens of these steps over all of their time */
    double final_train_loss, final_val_loss, best_val_loss;
    int64_t best_iter;
    double others_busy;   /* fraction of the processors that other programs used */
    double peak_measured; /* measured bytes of the plans' memory, including library allocations */
    double peak_rss;      /* of the whole process, including its code and libraries */
    struct gauge_summary gauges; /* during training only */
    bool complete;               /* max_iters was reached */
    /* How it ended: "finished", "nan", "interrupted", "no memory", "no disk", "failed"; NULL: it
     * was killed, still runs or is older. And the message of the failure; NULL: none. */
    const char *end, *why;
    /* Not in the file; `strobe report` derives them from the log. */
    double ms_spread;              /* half the interquartile range, which outliers do not change */
    int timed;                     /* measured steps, without the first ones */
    double plan_flops, plan_bytes; /* medians; an estimate, by the plan */
    int64_t nan_iter; /* of the first loss that is not a number, or of the end; -1: none */
};

extern const struct record *const run_summary_record;
/* "35.1 s = startup 1.2 + steps 16.9 + evaluation 8.1 + checkpoints 0.4 + other 8.5"; empty if it
 * is unknown. */
enum { WALL_TEXT = 200 };
const char *run_summary_wall(const struct run_summary *s, char buffer[WALL_TEXT]);

#endif
