/* trial.h - the compiled rungs of a ladder on a device (a bench), and its problem at one size (a
 * trial): memory, random inputs, the solution in double precision, and checks of outputs. */
#ifndef LAB_TRIAL_H
#define LAB_TRIAL_H

#include "base/arena.h"
#include "lab/describe_errors.h"
#include "tuning/tuning.h"

struct str;

/* A guard is memory that no rung may write: LAB_GUARD bytes after each tensor; in a probe
 * LAB_PROBE_GUARD bytes before and after each tensor. */
enum { TRIAL_SETS = 64, LAB_GUARD = 256, LAB_PROBE_GUARD = 1 << 20 };

/* An open device and the compiled rungs on it. */
struct lab_bench {
    const struct lab_ladder *ladder;
    struct device device;
    struct lab_rung rung[LAB_RUNGS]; /* the rungs that support `type` */
    int rungs;
    void *context;
    void *kernel[LAB_RUNGS], *prologue[LAB_RUNGS][LAB_PROLOGUES]; /* GPU only: compiled kernels */
    enum lab_type type;
    int form;
    struct target target;
    int processors; /* multiprocessors; 0 on a CPU */
};

/* `only`: names of rungs with commas between them; the ceiling's rung is always added. NULL: all
 * rungs; "": none. ST_USAGE: no rung of this type has one of the names. `own`: one more rung, or
 * NULL. */
enum status lab_bench_open(struct lab_bench *b, const struct lab_ladder *l,
                           const struct device *device, enum lab_type type, int form,
                           const char *only, const struct lab_rung *own);
void lab_bench_close(struct lab_bench *b);
/* Appends the PTX of a rung for this GPU or, if the rung does not compile, the compiler's
 * message. */
enum status lab_bench_assembly(const struct lab_bench *b, int rung, struct str *ret);
/* Why the device cannot run the rung; NULL: it can. */
const char *lab_bench_refuses(const struct lab_bench *b, int rung, struct arena *a);
/* Why the device cannot run the rung at the size of `p`; NULL: it can. */
const char *lab_rung_refuses(const struct lab_bench *b, int rung, const struct lab_problem *p,
                             struct arena *a);

/* The problem at one size. There are `sets` copies of all tensors, so that a timing that uses one
 * set after the other does not find them in a cache. */
struct lab_trial {
    const struct lab_bench *bench;
    struct lab_problem problem;
    void *in[TRIAL_SETS][LAB_INPUTS], *out[TRIAL_SETS];
    int sets;
    bool probe;                    /* opened with sets = 0, for lab_trial_run */
    const void *given[LAB_INPUTS]; /* in a probe: what the inputs contain */
    void *scratch;                 /* shared by all rungs */
    void *more, *zeros; /* for a `variant`: further outputs; an input of zeros; or NULL */
    int64_t scratch_bytes;
    /* For rungs with a `variant`: the backend's kernel and its prepared call; else NULL. */
    const struct kernel *row[LAB_RUNGS];
    struct kernel_call *call[LAB_RUNGS];
    union attr attr;
    struct tuning tuning; /* of the rungs with a `variant` */
    double *expected;     /* the solution */
    double norm;          /* the number that errors are divided by */
    struct arena arena;
};

/* Bytes of device memory of one set. */
int64_t lab_set_bytes(const struct lab_problem *p);
/* Fills a problem for the sizes n. */
void lab_problem_of(const struct lab_bench *b, const int64_t n[LAB_SIZES], struct lab_problem *ret);
/* Opens a trial; `sets` = 0 opens a probe, which has one set and no solution. */
enum status lab_trial_open(struct lab_trial *t, const struct lab_bench *b,
                           const int64_t n[LAB_SIZES], int sets);
void lab_trial_close(struct lab_trial *t);

/* Launches a rung on set `set` and does not wait for it. */
enum status lab_trial_start(const struct lab_trial *t, int rung, int set);
/* Fills the output of set `set` and its guard with NaN, runs the rung and waits. *ret_error is the
 * relative error by norm; infinite if the output has a NaN or the rung wrote to the guard. If the
 * error is larger than the ladder allows, *ret_where describes it, in `a`. */
enum status lab_trial_check(const struct lab_trial *t, int rung, int set, double *ret_error,
                            struct lab_where *ret_where, struct arena *a);
/* In a probe: runs a rung and waits. ST_DEVICE: the device stopped the kernel. */
enum status lab_trial_run(const struct lab_trial *t, int rung);
/* After lab_trial_run: *ret_where says which input or guard the rung wrote; NULL: none. */
enum status lab_trial_written(const struct lab_trial *t, const char **ret_where, struct arena *a);

#endif
