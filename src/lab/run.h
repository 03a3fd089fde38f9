/* run.h - runs a ladder: checks every rung, times all of them in turns, judges.
 *
 * Each rung is compared with double precision at odd sizes and at the size that is timed, before
 * the timing and after it. The rungs are timed in turns (measure/rounds.h). The caches are cold,
 * unless asked otherwise: calls go from one set of tensors to the next, and all sets together are
 * twice as large as the last cache. A time that the memory cannot have is refused. */
#ifndef LAB_RUN_H
#define LAB_RUN_H

#include "lab/trial.h"
#include "machine/machine.h"
#include "measure/rounds.h"

/* What a kernel on a GPU may use; 0: as much as it likes. */
struct lab_limits {
    int64_t registers, shared_bytes, threads; /* of a thread, of a block, of a block */
    int64_t blocks;                           /* of the grid */
};

struct lab_options {
    const struct lab_ladder *ladder;
    struct device device;
    enum lab_type type;
    int form;                      /* of the ladder's */
    const char *only;              /* rungs, as lab_bench_open takes them; NULL: all */
    const struct lab_rung *own;    /* the user's kernel (lab/own.h), the last rung; NULL: none */
    const char *own_left_out;      /* why it cannot run, from its probe; NULL: it can */
    struct lab_limits limits;      /* rungs that use more are left out */
    int64_t n[LAB_SIZES];          /* what is timed; 0: the ladder's own size for the device */
    bool warm;                     /* the tensors may stay in the caches */
    bool counters;                 /* of a GPU: also what hardware counters say of one call */
    int samples;                   /* of each rung */
    bool go_on;                    /* more, while the order is uncertain (rounds.h) */
    double limit_ms;               /* for the timing of all rungs together */
    const struct machine *machine; /* of a CPU: the record of its copies; may be NULL */
    void (*each)(void *user, double share, const char *what);
    void *user;
};

struct lab_result {
    const struct lab_rung *rung;
    const char *left_out; /* why it was not timed, or is not believed; NULL: it was */
    bool wrong;           /* ... because its result is wrong */
    double wrong_share;   /* of the elements, at the size that left_out names */
    double error;         /* the largest of all checks; NAN: it was not checked */
    struct contender time;
    struct judgement previous, first; /* beside the previous and the first rung that were timed */
    double rate;                      /* useful bytes per second */
    double share;                     /* of the ceiling: its time / that of the rung; or NAN */
    /* Share of the way from the first rung to the ceiling or, with limits, to the fastest rung
     * within them, by ratios: log(first / this) / log(first / ceiling). NAN: the first rung is not
     * slower than that. */
    double score;
    struct kernel_shape shape; /* of a GPU */
    struct kernel_resources resources;
    /* Why it is as fast as it is, in a sentence made from these numbers; NULL: they do not say. */
    const char *why;
    /* Bytes of one call, by count and by hardware counters: what warps move to and from global
     * memory (copies of tensor maps too, as they come from L2) if the problem has FLOPs, else bytes
     * of DRAM; NAN: unknown. */
    double counted, measured;
    double waves; /* blocks of the grid / blocks that the GPU holds at once; 0: unknown */
};

struct lab_run {
    const struct lab_options *options;
    struct lab_problem problem;
    int sets;  /* of tensors */
    bool cold; /* all of them together are twice as large as the last cache */
    struct lab_result result[LAB_RUNGS];
    int results;
    /* The ceiling: the rung that says so in its row; else a copy of as many bytes by the device
     * itself, timed in turns with the rungs, or the machine's record of copies (machine/machine.h)
     * if that is faster. */
    const char *ceiling; /* "the driver's copy"; NULL: the rung that should be it has no time */
    double ceiling_ms;
    const char *copy; /* what was timed in turns, and its times; NULL: a rung is the ceiling */
    struct contender copy_time;
    double tolerance;
    const char *no_counters; /* why there are none although they were requested; else NULL */
    int wrong;               /* rungs whose result is wrong */
};

/* ST_INTERRUPTED if Ctrl-C ended it before all rungs had a sample. */
enum status lab_run(const struct lab_options *o, struct lab_run *ret, struct arena *a);

#endif
