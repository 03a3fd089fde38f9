/* run.h - runs a ladder: checks every rung, times all rungs in turns, and compares the times.
 *
 * Each rung is compared with double precision at odd sizes and at the size that is timed, before
 * the timing and after it. The rungs are timed in turns (measure/rounds.h). By default the caches
 * are cold: each call uses the next of several sets of tensors, which together should be at least
 * twice as large as the last cache (lab_run.cold). A time that would exceed the memory's bandwidth
 * is rejected. */
#ifndef LAB_RUN_H
#define LAB_RUN_H

#include "lab/trial.h"
#include "machine/machine.h"
#include "measure/rounds.h"

/* The most resources that a GPU kernel may use; 0: no limit. */
struct lab_limits {
    int64_t registers, shared_bytes, threads; /* per thread, per block, per block */
    int64_t blocks;                           /* of the grid */
};

struct lab_options {
    const struct lab_ladder *ladder;
    struct device device;
    enum lab_type type;
    int form;                      /* index in lab_ladder.forms */
    const char *only;              /* names of rungs, as for lab_bench_open; NULL: all */
    const struct lab_rung *own;    /* the user's kernel (lab/own.h), the last rung; NULL: none */
    const char *own_left_out;      /* why the probe found that `own` cannot run; NULL: it can */
    struct lab_limits limits;      /* rungs that exceed a limit are left out */
    int64_t n[LAB_SIZES];          /* the size that is timed; 0: the ladder's default */
    bool warm;                     /* the tensors may stay in the caches */
    bool counters;                 /* GPU only: also read hardware counters of one call */
    int samples;                   /* of each rung */
    bool go_on;                    /* sample on while the order of the rungs is uncertain */
    double limit_ms;               /* for the timing of all rungs together */
    const struct machine *machine; /* measurements by `strobe machine`; may be NULL */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct lab_result {
    const struct lab_rung *rung;
    const char *left_out; /* why there is no time, or why it is rejected; NULL: the time is valid */
    bool wrong;           /* left out because its output is wrong */
    double wrong_share;   /* wrong elements / elements, at the size that left_out names */
    double error;         /* the largest of all checks; NAN: it was not checked */
    struct contender time;
    struct judgement previous, first; /* compared with the previous and the first rung */
    double rate;                      /* useful bytes per second */
    double share;                     /* time of the ceiling / time of this rung; NAN: unknown */
    /* log(first / this) / log(first / best), where `first` is the time of the first rung, `this`
     * the time of this rung, and `best` the time of the ceiling or, with limits, of the fastest
     * rung within the limits. NAN: the first rung is not slower than `best`. */
    double score;
    struct kernel_shape shape; /* GPU only */
    struct kernel_resources resources;
    const char *why; /* a sentence that explains the time from these numbers; NULL: none */
    /* Bytes of one call, counted from the source and measured by hardware counters. If the problem
     * has FLOPs: bytes between warps and global memory (for a rung with tensor maps the reads are
     * measured at L2). Else: bytes of DRAM. NAN: unknown. */
    double counted, measured;
    double waves; /* blocks of the grid / blocks that fit on the GPU at once; 0: unknown */
};

struct lab_run {
    const struct lab_options *options;
    struct lab_problem problem;
    int sets;  /* number of sets of tensors */
    bool cold; /* all sets together are twice as large as the last cache */
    struct lab_result result[LAB_RUNGS];
    int results;
    /* The ceiling is the rung whose row has `ceiling`. Without such a rung it is a copy of as many
     * bytes as the problem has: ceiling.h's copy, timed in turns with the rungs, or the copy that
     * `strobe machine` measured (machine/machine.h), whichever is faster. */
    const char *ceiling; /* its name, "the driver's copy"; NULL: the ceiling's rung has no time */
    double ceiling_ms;
    const char *copy; /* the name of ceiling.h's copy; NULL: a rung is the ceiling */
    struct contender copy_time;
    double tolerance;
    const char *no_counters; /* why the requested counters are missing; NULL: they are not */
    int wrong;               /* rungs whose result is wrong */
};

/* Runs a ladder. ST_INTERRUPTED: Ctrl-C came before all rungs had a sample. */
enum status lab_run(const struct lab_options *o, struct lab_run *ret, struct arena *a);

#endif
