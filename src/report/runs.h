/* runs.h - a run directory, read back into memory.
 *
 * Only files are read, so runs of older programs and other machines stay readable. Unknown
 * fields are ignored, missing ones are NAN or NULL, and an unknown version of a file is an error
 * that names the file. Everything read lives in the arena. */
#ifndef REPORT_RUNS_H
#define REPORT_RUNS_H

#include "report/gauges.h"
#include "result/run_log.h"

struct run_pair {
    const char *key, *value;
};

/* plan.json; NAN if it is absent. Memory in bytes. */
struct run_plan {
    double parameters, tokens_per_step, kernels_per_step, flops_per_step, bytes_per_step;
    double weights, gradients, optimizer, activations, total;
    const char *work; /* plan_sha256; NULL: unknown */
};

/* Results of the run: from summary.json if it has the field, otherwise derived from the log. Times
 * leave out the first steps, which warm caches and fault pages in. */
struct run_figures {
    int64_t iters;
    double seconds, ms_median, ms_std, tokens_per_s;
    double mfu; /* a fraction of the measured peak; above 1: it is too low; NAN: unknown */
    double run_tokens_per_s, run_mfu; /* all tokens over all time; the others are of the median */
    double ms_spread;              /* half the interquartile range, which outliers do not change */
    int timed;                     /* measured steps, without the first ones */
    double plan_flops, plan_bytes; /* medians; an estimate, by the plan */
    double others_busy;            /* share of the processors that other programs used */
    double final_train_loss, final_val_loss, best_val_loss;
    double memory_planned, memory_peak;
    bool complete;
    /* How it ended, in the words of summary.json: "finished", "nan"; NULL: it was killed, still
     * runs or is older. `why`: NULL: nothing more is known. */
    const char *end, *why;
    const char *wall; /* "35.1 s = startup 1.2 + steps 16.9 + ..."; NULL: unknown */
    int64_t
        nan_iter; /* of the first loss in the log that is not a number, or of the end; -1: none */
};

struct run {
    const char *name; /* last part of the path, or the whole path if two runs share that part */
    const char *dir;
    struct run_pair *setting;     /* config.conf */
    struct run_pair *environment; /* env.json, nested keys as "libraries.x" */
    int settings, environments;
    struct run_step
        *step; /* by iter, each once: steps that a resumed run repeats replace earlier ones */
    struct run_eval *eval;
    struct run_turn *turn;
    int steps, evals, turns;
    struct gauges gauges;
    struct run_plan plan;
    const char *samples; /* valid UTF-8; NULL: none */
    /* SHA-256 of the validation text and of the vocabulary, by vocabulary.json; NULL: unknown. */
    const char *val_sha256, *vocabulary_sha256;
    struct run_figures figures;
};

/* Reads `n` run directories into an array. */
enum status runs_read(char *const *dirs, int n, struct arena *a, struct run **ret_runs);
/* The lines of initial steps that statistics leave out (base/stats.h). */
int run_warm_steps(const struct run *r);
/* The value of a key in settings or environment; NULL if there is none. */
const char *run_pair_find(const struct run_pair *pair, int n, const char *key);

#endif
