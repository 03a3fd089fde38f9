/* runs.h - a run directory, read back into memory.
 *
 * Only files are read, so runs of older programs and other machines stay readable. Unknown
 * fields are ignored, missing ones are NAN or NULL, and an unknown version of a file is an error
 * that names the file. Everything read lives in the arena. */
#ifndef REPORT_RUNS_H
#define REPORT_RUNS_H

#include "base/arena.h"
#include "result/plan_facts.h"
#include "result/run_summary.h"

struct run_pair {
    const char *key, *value;
};

/* Telemetry of the device: the readings in log.jsonl; engine/gauge.h bounds their number. */
struct gauges {
    struct gauge_reading *point;
    int points, capacity;
    double clock_max_mhz, power_limit_w; /* the last known values */
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
    struct facts plan;   /* plan.json */
    const char *samples; /* valid UTF-8; NULL: none */
    /* SHA-256 of the validation text and of the vocabulary, by vocabulary.json; NULL: unknown. */
    const char *val_sha256, *vocabulary_sha256;
    /* Results: from summary.json if it has the field, otherwise derived from the log. Times leave
     * out the first steps, which warm caches and fault pages in. */
    struct run_summary figures;
};

/* Reads `n` run directories into an array. */
enum status runs_read(char *const *dirs, int n, struct arena *a, struct run **ret_runs);
/* The lines of initial steps that statistics leave out (base/stats.h). */
int run_warm_steps(const struct run *r);
/* The value of a key in settings or environment; NULL if there is none. */
const char *run_pair_find(const struct run_pair *pair, int n, const char *key);

#endif
