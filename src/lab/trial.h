/* trial.h - the rungs of a ladder on a device, and its problem at one size: memory, random inputs,
 * the solution in double precision, and the check of what a rung computed. */
#ifndef LAB_TRIAL_H
#define LAB_TRIAL_H

#include "base/arena.h"
#include "lab/wrong.h"
#include "tuning/tuning.h"

struct str;

/* Bytes after each tensor that no rung may write; of a probe also before it. */
enum { TRIAL_SETS = 64, LAB_GUARD = 256, LAB_PROBE_GUARD = 1 << 20 };

/* An open device and the compiled rungs on it. */
struct lab_bench {
    const struct lab_ladder *ladder;
    struct device device;
    struct lab_rung rung[LAB_RUNGS]; /* those of its type */
    int rungs;
    void *context;
    void *kernel[LAB_RUNGS], *before[LAB_RUNGS][LAB_STAGES]; /* of a GPU */
    enum lab_type type;
    int form;
    struct target target;
    int processors; /* multiprocessors of a GPU */
};

/* `only`: names of rungs with commas between them; the ceiling's rung is always taken. NULL: all;
 * "": none. A name that no rung of this type has is ST_USAGE. `own`: one more rung, or NULL. */
enum status lab_bench_open(struct lab_bench *b, const struct lab_ladder *l,
                           const struct device *device, enum lab_type type, int form,
                           const char *only, const struct lab_rung *own);
void lab_bench_close(struct lab_bench *b);
/* Appends what the compiler makes of a rung for this GPU: PTX; after a failure its message. */
enum status lab_bench_assembly(const struct lab_bench *b, int rung, struct str *ret);
/* Why the device cannot run the rung; NULL: it can. */
const char *lab_bench_refuses(const struct lab_bench *b, int rung, struct arena *a);
/* The same for one size. */
const char *lab_rung_refuses(const struct lab_bench *b, int rung, const struct lab_problem *p,
                             struct arena *a);

/* One size. The tensors are there `sets` times, with the same numbers: a timing that goes from set
 * to set finds none of them in a cache. */
struct lab_trial {
    const struct lab_bench *bench;
    struct lab_problem problem;
    void *in[TRIAL_SETS][LAB_INPUTS], *out[TRIAL_SETS];
    int sets;
    bool probe;                    /* for lab_trial_run */
    const void *given[LAB_INPUTS]; /* of a probe: the inputs' content */
    void *scratch;                 /* of all rungs in turn */
    void *more, *zeros; /* further outputs of rows of the backend, and an input: zeros; or NULL */
    int64_t scratch_bytes;
    /* Of rungs that are rows of the backend: the row and its prepared call; NULL: not prepared. */
    const struct kernel *row[LAB_RUNGS];
    struct kernel_call *call[LAB_RUNGS];
    union attr attr;
    struct tuning tuning; /* of them */
    double *expected;     /* of the output */
    double norm;          /* what errors are relative to */
    struct arena arena;
};

/* Bytes of device memory of one set. */
int64_t lab_set_bytes(const struct lab_problem *p);
/* Completes problem.n with the ladder's other fields. */
void lab_problem_of(const struct lab_bench *b, const int64_t n[LAB_SIZES], struct lab_problem *ret);
/* `sets` 0: a probe, one set without a solution. */
enum status lab_trial_open(struct lab_trial *t, const struct lab_bench *b,
                           const int64_t n[LAB_SIZES], int sets);
void lab_trial_close(struct lab_trial *t);

/* Launches a rung on set `set`; does not wait. */
enum status lab_trial_start(const struct lab_trial *t, int rung, int set);
/* Poisons the output of set `set` and what follows it, runs the rung and waits; *ret_error: of the
 * output, relative to its solution, by norm; infinite for a NaN, or if the rung wrote beyond the
 * output. Beyond what the ladder allows, *ret_where says where, in `a`. */
enum status lab_trial_check(const struct lab_trial *t, int rung, int set, double *ret_error,
                            struct lab_where *ret_where, struct arena *a);
/* Of a probe: runs a rung and waits. ST_DEVICE: the device stopped it. */
enum status lab_trial_run(const struct lab_trial *t, int rung);
/* After that: *ret_where: what it wrote that it may not write; NULL: nothing of the kind within
 * LAB_PROBE_GUARD. */
enum status lab_trial_written(const struct lab_trial *t, const char **ret_where, struct arena *a);

#endif
