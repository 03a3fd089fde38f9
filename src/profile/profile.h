/* profile.h - where the time of a training step goes: the device's activities, joined with the
 * plan.
 *
 * A row is a node of one of the step's plans, or one kernel of a node if the device reports its
 * kernels. Rows and the idle time between them add up to the measured time: where two activities
 * overlap, the time counts for the one that began first. Everything else here is derived from the
 * rows. */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "backend/communicator.h"
#include "backend/counters.h"
#include "backend/trace.h"
#include "base/host.h"
#include "base/turn.h"
#include "engine/engine.h"
#include "engine/launches.h"
#include "engine/optimizer.h"
#include "machine/machine.h"
#include "measure/random_crew.h"
#include "measure/random_step.h"
#include "result/profile_file.h"

/* The source of the times. */
enum profile_times {
    PROFILE_CLOCK,  /* host clock around each kernel; the host is the device */
    PROFILE_EVENTS, /* device events, one after each kernel */
    PROFILE_TRACE,  /* the device's trace of its activities (CUPTI) */
};
/* "clock", "events", "cupti" */
const char *profile_times_name(enum profile_times by);

/* `primitive`: layers were expanded, so every node in the scope of a norm belongs to the norm. */
enum family family_of(const struct node *n, bool primitive);

struct range range_of(const struct node *n, const struct optimizer *o, struct arena *a);
bool range_has(const struct range *r, const char *word);
/* The number of words that both begin with. */
int range_shared(const struct range *x, const struct range *y);

/* What limits the speed of a kernel. */
enum bound {
    BOUND_NONE,    /* unknown: no FLOPs and no bytes */
    BOUND_COMPUTE, /* FLOPs at the peak of the type take longer than bytes at copy bandwidth */
    BOUND_MEMORY,  /* bytes at copy bandwidth take longer */
    BOUND_LATENCY, /* short or little work, and the floor explains only a small part of the time */
};
/* "", "compute", "memory", "latency" */
const char *bound_name(enum bound bound);

/* Everything recorded in the profiled steps, by base/clock.h's clock. A trace shows a part. */
struct profile_span {
    int64_t start_ns, end_ns;
};
/* An action of the host: a part of a step, followed by the kernel launches within it. */
struct profile_action {
    int mark; /* of the kernel, as numbered in collect.h; -1: the part itself */
    enum random_step_part part;
    int step; /* the step it belongs to; the device may still run an earlier one */
    struct profile_span span;
};
/* The work of one thread of the host in a kernel, if the host is the device. */
struct profile_thread_span {
    int mark, thread, step;
    bool unseen; /* the thread that called a library, whose own threads are not seen */
    struct profile_span span;
};
struct profile_record {
    const struct activity *activity; /* ordered by start */
    const int *row;                  /* of each activity */
    const struct profile_span *step;
    const int64_t *begin, *end; /* per step: its activities are begin ... end - 1 */
    const struct profile_action *action;
    int64_t actions;
    const struct profile_thread_span *thread_span; /* by time of its kernel */
    int64_t thread_spans;
    const struct api_call *api; /* ordered by start, also between steps; none without a trace */
    int64_t apis;
    const struct api_call *opening; /* before the profiled steps, if `calls` asked for them */
    int64_t openings;
};

/* Neighboring steps: those of a turn, if profiles are made in turns (base/turn.h). Verdicts
 * compare chunks. */
struct profile_chunk {
    int64_t turn;       /* its number; without turns its index */
    int plain_end, end; /* steps up to its end: unprofiled, profiled */
};

/* Communication of several ranks. Times are milliseconds of a step, the mean over all steps, at
 * rank 0 unless they are of a rank. */
struct profile_collective {
    int mark; /* as numbered in collect.h */
    enum op op;
    const char *name;  /* the scope of its node: "bucket.0" */
    int64_t bytes;     /* of its range */
    double link_bytes; /* that a rank sends and receives: the cost of its node */
    double ms;         /* from the arrival of the last rank to its end */
    double waited_ms;  /* from the arrival of rank 0 to that of the last rank; NaN: unknown */
    double ceiling;    /* bytes/s of a measured all-reduce of as many bytes; 0: unknown */
};
struct profile_kernel {
    int mark;
    int64_t start_ns, end_ns;
};
struct profile_rank {
    struct collective_record *collective; /* of all steps */
    struct profile_kernel *kernel;        /* of all steps; NULL: rank 0, see profile_record */
    int kernels;                          /* of a step */
    double waited_ms;                     /* in all its collectives, for the slowest rank */
};
struct profile_communication {
    int ranks;
    int seen; /* how many ranks recorded their collectives: all threads, or rank 0 as a process */
    /* By a GPU's trace: the times are those of NCCL's kernels, in which a rank also waits for the
     * others, and `seen` is 0. */
    bool kernels;
    /* In which a collective was started and not done: beside kernels that compute (hidden), and the
     * rest (exposed). */
    double all_ms, hidden_ms, exposed_ms;
    struct profile_collective *collective; /* of a step, in their order */
    int collectives;
    struct profile_rank *rank; /* `seen` of them */
};

struct profile {
    const struct engine *engine;
    const char *commit;            /* of the program; NULL: unknown */
    const char *command;           /* the command line that made the profile; NULL: unknown */
    const struct machine *machine; /* its ceilings give the floors */
    enum profile_times by;
    const char *why; /* why there is no device trace; NULL: there is, or the host is the device */
    bool replay;     /* the steps were replayed from a captured graph */
    int threads;     /* observed threads of the host; 0: none */
    int warmup, steps;
    int wanted;                         /* requested profiled steps */
    bool interrupted;                   /* by Ctrl-C, so `steps` is smaller */
    struct stats step_ms;               /* of profiled steps, overhead included */
    struct stats plain_ms;              /* of unprofiled steps */
    double overhead;                    /* of profiling: 0.01 is 1 % */
    double overhead_low, overhead_high; /* half of the pairs lie in between */
    double host_ms;                     /* host time to launch a step, median */
    int64_t turns_of;                   /* which set of turns; 0: there were none */
    struct host_work away;              /* processor time while it waited for turns */
    double away_s;
    struct turn_grant turn; /* the last one, and the profiled steps at its begin */
    struct profile_chunk *chunk;
    int chunks;
    double *plain_step_ms;       /* per unprofiled step */
    double *whole_step_ms;       /* per profiled step */
    double mean_ms[PHASE_COUNT]; /* per phase, idle time included: they add up to the mean step */
    double idle_ms[PHASE_COUNT]; /* idle time of each phase */
    double *idle_step_ms;        /* per step */
    int64_t gaps;                /* idle intervals per step */
    int64_t dropped, unmatched;  /* activities: lost; of no known kernel */
    const char *dropped_why;     /* a sentence; NULL: none were dropped */
    const char *traced_by;       /* "CUPTI 13.0.1"; NULL: no trace */
    int counted;                 /* kernels of a step with hardware counters; 0: there are none */
    const char *counters_why;    /* why not, although they were requested; else NULL */
    double others;               /* processors kept busy by other processes; 0: none, or unknown */
    struct profile_row *row;
    int rows;
    struct profile_moment *moment; /* of the step nearest to the median */
    int moments, shown_step;
    struct profile_record record;
    const struct profile_communication *communication; /* NULL: one rank, or not recorded */
};

/* Records what the other ranks do in the measured steps: `watch` is for random_crew_open. */
struct profile_ranks;
struct profile_ranks *profile_ranks_new(struct arena *a);
struct random_crew_watch profile_ranks_watch(struct profile_ranks *r);

struct profile_options {
    int warmup, steps; /* at least 1 */
    double limit_ms;   /* of the whole run: fewer slow steps are run, but at least three */
    double least_ms;   /* of all profiled steps: more short steps are run; 0: no minimum */
    int turns;         /* socket that gives turns (base/turn.h); 0: there are none */
    bool no_trace;     /* use events, not the device's trace */
    bool calls;        /* the caller began to record calls (backend_trace) before it opened e */
    bool counters;     /* also hardware counters, in further steps after all others */
    const struct machine *machine;
    struct profile_ranks *ranks; /* NULL: there is one rank */
    /* Progress: steps done, steps in total, seconds left (below 0: unknown). May be NULL. */
    void (*each)(void *user, int done, int total, double left_s, const char *what);
    void *user;
};

/* Other programs used the processors that the step ran on: rates, floors and the sentence about
 * them are by medians, which bursts change less than means. */
bool profile_is_busy(const struct profile *p);
/* Runs training steps on random tokens, some profiled and some not. The engine holds the plans of
 * training; its weights are initialized here and must not be used afterwards. Ctrl-C
 * (base/interrupt.h) ends the run after the current step: the profile then has fewer steps than
 * `wanted`, or ST_INTERRUPTED is returned if no pair of steps is complete. */
enum status profile_run(struct engine *e, const struct profile_options *o, struct profile *ret,
                        struct arena *a);

/* Bytes that one execution moved between DRAM and L2, read and written; 0: not counted. */
double profile_dram(const struct profile_row *r);
/* The median of each chunk's times; NAN: it has none. `step_ms`: one for each profiled step, or
 * with `plain` for each other one. */
double *profile_chunks_ms(const struct profile *p, const double *step_ms, bool plain,
                          struct arena *a);

/* --- groups of rows --------------------------------------------------------------------------- */

enum profile_by { BY_KERNEL, BY_OP, BY_FAMILY, BY_LAYER, BY_PHASE, BY_RANGE, PROFILE_BYS };
/* "kernel", "op", "family", "layer", "phase", "range" */
const char *profile_by_name(enum profile_by by);

/* Mask of all phases: 1 << PHASE_FORWARD ... */
enum { PHASES_ALL = (1 << PHASE_COUNT) - 1 };

struct profile_group {
    const char *name;
    int depth;           /* BY_RANGE: nesting depth; its parts follow it and are included in it */
    double ms;           /* per step */
    double share;        /* of the measured time: depth 0 and idle time add up to 1 */
    int runs;            /* executions per step */
    struct stats run_ms; /* over all executions */
    double flops, bytes; /* per step */
    double floor_ms;     /* per step */
    double work_ms;      /* per step: the time for rates and the floor, see profile_row */
    enum bound bound;    /* of most of its time */
    enum machine_precision precision; /* of its longest row */
    enum family family;               /* of its longest row */
    double busy_ms, busiest_ms;       /* per step */
    double seen_ms;                   /* per step: the time of rows whose threads are observed */
    /* Of rows with hardware counters: bytes per step, and shares of their time. */
    struct kernel_counters counters;
    double counted_ms;                /* per step: the time of these rows */
    double work_dram, planned_dram;   /* per step: DRAM bytes where the plan has bytes, and these */
    const struct step_launch *launch; /* BY_KERNEL: of its longest row; NULL: see profile_row */
};

struct profile_groups {
    enum profile_by by;
    unsigned phases;
    /* Longest first; BY_LAYER, BY_PHASE, BY_RANGE: in execution order. The last is idle time. */
    struct profile_group *group;
    int groups;
    double ms; /* measured time of the phases per step, idle time included */
    double floor_ms, flops, bytes;
};

void profile_groups(const struct profile *p, enum profile_by by, unsigned phases,
                    struct profile_groups *ret, struct arena *a);

/* "MATMUL 768 x 384 x 128 onednn" */
const char *profile_kernel_name(const struct profile_row *r, struct arena *a);
/* "generate tokens", "launch the step" (on a CPU "run the step"), "wait" */
const char *profile_part_name(const struct profile *p, enum random_step_part part);
/* Measured time of these phases, and the part of one family: ms per step. */
double profile_ms(const struct profile *p, unsigned phases);
double profile_family_ms(const struct profile *p, unsigned phases, enum family family);

#endif
