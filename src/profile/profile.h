/* profile.h - where the time of a training step goes: what a device did, joined with what the plan knows.
 *
 * A row is a node of one of the step's plans, or, where the device tells its kernels apart, one kernel of
 * a node. Rows, and the idle time between them, add up to the measured time: a moment in which two things
 * run counts for the one that began first. Everything else here is read off the rows. */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "backend/trace.h"
#include "base/stats.h"
#include "engine/engine.h"
#include "machine/machine.h"
#include "measure/random_step.h"

/* Who took the times. */
enum profile_times {
    PROFILE_CLOCK,  /* the host's clock, around each kernel; the host is the device */
    PROFILE_EVENTS, /* the device's events, one behind each kernel */
    PROFILE_TRACE,  /* the device's own record of what it did */
};
/* "clock", "events", "cupti" */
const char *profile_times_name(enum profile_times by);

/* `primitive`: layers were expanded to the bottom, so what is in a norm's scope is the norm. */
enum family family_of(const struct node *n, bool primitive);

/* Where a node stands, as a person thinks: "forward", "block 3", "attention", "scores". */
enum { RANGE_DEPTH = 6 };
struct range {
    const char *word[RANGE_DEPTH];
    int words;
    int layer; /* block of the model, -1 outside; also of a gradient that is stored */
};
struct range range_of(const struct node *n, struct arena *a);

/* What keeps a kernel from being faster. */
enum bound {
    BOUND_NONE,    /* unknown: it has neither FLOPs nor bytes */
    BOUND_COMPUTE, /* its FLOPs at the peak of its type take longer than its bytes */
    BOUND_MEMORY,  /* its bytes at the rate of a copy do */
    BOUND_LATENCY, /* it is short, and neither explains a quarter of its time; or next to no work, and they explain nothing */
};
/* "", "compute", "memory", "latency" */
const char *bound_name(enum bound bound);

struct profile_row {
    enum graph_kind kind; /* of whose plan */
    int node;             /* -1: of no node */
    enum phase phase;
    enum op op;
    enum family family;
    struct range range;
    const char *scope;
    const char *variant;       /* of the table of kernels: "onednn" */
    const char *device_kernel; /* as the device calls it; NULL: it does not tell */
    const char *device_short;  /* the same for a table */
    const char *shape;
    const char *types; /* "f32 (4,32), f32 (32,8) -> f32 (4,8)" */
    enum dtype dtype;
    enum machine_precision products; /* whose peak its arithmetic is held against */
    struct cost cost; /* of one execution; of a node of several kernels the longest has it all */
    double floor_ms;  /* of one execution: FLOPs and bytes at the ceilings, the larger of the two */
    enum bound bound;
    /* results */
    double *run_ms; /* of each execution, in all steps */
    int runs;
    double *step_ms; /* of each step: its own part of the time */
    double ms;       /* of a step, the mean: rows and idle time add up to the step */
    double
        work_ms; /* the time that `cost` took: of all the node's kernels, where they are rows of their own */
    double hidden_ms; /* of a step, the mean: what ran while an earlier row did */
    /* Threads of the host: how long they worked, of one step; 0 where they are not seen. */
    double busy_ms;    /* the mean of the threads */
    double busiest_ms; /* the one that worked longest, kernel by kernel */
    bool unseen;       /* a library shares the work among them by itself */
};

struct profile_moment { /* of the timeline */
    int row;
    double start_us, end_us;
    int lane; /* 0: kernels; 1: copies beside them */
};

/* What passed in all watched steps, in the clock of base/clock.h; a trace shows some of them. */
struct profile_span {
    int64_t start_ns, end_ns;
};
/* What the host did: a part of a step, or, within it, starting a kernel. Parts stand before what they contain. */
struct profile_deed {
    int mark; /* of the kernel, as collect.h numbers them; -1: the part itself */
    enum random_step_part part;
    int step; /* for which it was done: the device may still be at an earlier one */
    struct profile_span span;
};
struct profile_record {
    const struct activity *activity; /* in the order of start */
    const int *row;                  /* of each */
    const struct profile_span *step;
    const int64_t *begin, *end; /* of each step its activities: begin ... end - 1 */
    const struct profile_deed *deed;
    int64_t deeds;
};

struct profile {
    const struct engine *engine;
    const char *command; /* that makes such a profile, as it was given; NULL: nobody says */
    const struct machine *machine; /* whose ceilings the floors are of */
    enum profile_times by;
    const char *why; /* not by the device's own record; NULL: it is, or the host is the device */
    bool replay;     /* the steps were played from a recording */
    int threads;     /* of the host, that were watched; 0: none */
    int warmup, steps;
    int wanted;                         /* steps that were to be watched */
    bool interrupted;                   /* by Ctrl-C, so they are fewer */
    struct stats step_ms;               /* as measured, with all that measuring adds */
    struct stats plain_ms;              /* of steps that nobody watched */
    double overhead;                    /* of being watched: 0.01 is 1 % */
    double overhead_low, overhead_high; /* half of the pairs are in between */
    double host_ms;                     /* that the host takes to start a step; the median */
    double mean_ms[PHASE_COUNT]; /* of the step's parts, idle time in it: they add up to its mean */
    double idle_ms[PHASE_COUNT]; /* of these, nothing ran */
    double *idle_step_ms;        /* of each step */
    int64_t gaps;                /* of a step: how often nothing ran */
    int64_t dropped, unmatched;  /* what the device did: not kept; of no kernel that is known */
    const char *dropped_why;     /* a sentence; NULL: nothing was */
    const char *traced_by;       /* "CUPTI 13.0.1"; NULL: there was no record */
    double others; /* processors that other programs kept busy meanwhile; 0: none, or unknown */
    struct profile_row *row;
    int rows;
    struct profile_moment *moment; /* of the step nearest to the median */
    int moments, shown_step;
    struct profile_record record;
};

struct profile_options {
    int warmup, steps; /* at least 1 */
    double limit_ms;   /* that all should take: slow steps are fewer, three at least */
    double
        least_ms; /* that watched steps shall take together: short ones are more; 0: they need not */
    bool no_trace; /* do not ask the device for its record */
    const struct machine *machine;
    /* Steps that were made and that will be, as far as is known; seconds that are left, below 0: unknown. NULL: none. */
    void (*each)(void *user, int done, int total, double left_s, const char *what);
    void *user;
};

/* Runs steps of training on random tokens, some unwatched and some watched. The engine holds the plans of training; its weights
 * are drawn and must not be used afterwards. A Ctrl-C that was noted (base/interrupt.h) ends it after the step: what was
 * watched by then is a profile, of fewer steps than `wanted`; where no pair was, it is ST_INTERRUPTED. */
enum status profile_run(struct engine *e, const struct profile_options *o, struct profile *ret,
                        struct arena *a);

/* --- what is read off the rows ------------------------------------------------------------------ */

enum profile_by { BY_KERNEL, BY_OP, BY_FAMILY, BY_LAYER, BY_PHASE, BY_RANGE, PROFILE_BYS };
/* "kernel", "op", "family", "layer", "phase", "range" */
const char *profile_by_name(enum profile_by by);

/* Phases that count, a mask: 1 << PHASE_FORWARD ... */
enum { PHASES_ALL = (1 << PHASE_COUNT) - 1 };

struct profile_group {
    const char *name;
    int depth;           /* BY_RANGE: how deep it is nested; its parts follow it and count in it */
    double ms;           /* of a step */
    double share;        /* of the measured time: those of depth 0 and idle time add up to 1 */
    int runs;            /* executions in a step */
    struct stats run_ms; /* of all executions */
    double flops, bytes; /* of a step */
    double floor_ms;     /* of a step */
    double work_ms;      /* of a step: what rates and the floor are held against, profile_row's */
    enum bound bound;    /* of most of its time */
    enum machine_precision products; /* of its longest row */
    enum family family;              /* of its longest row */
    double busy_ms, busiest_ms,
        seen_ms; /* of a step; seen: the time of rows whose threads are seen */
};

struct profile_groups {
    enum profile_by by;
    unsigned phases;
    struct profile_group *
        group; /* longest first; BY_LAYER, BY_PHASE, BY_RANGE: as they run. The last is idle time */
    int groups;
    double ms; /* the measured time of a step's phases, idle time included */
    double floor_ms, flops, bytes;
};

void profile_groups(const struct profile *p, enum profile_by by, unsigned phases,
                    struct profile_groups *ret, struct arena *a);

/* "MATMUL 768 x 384 x 128 onednn" */
const char *profile_kernel_name(const struct profile_row *r, struct arena *a);
/* The measured time of these phases, and what of it a family took: ms of a step. */
double profile_ms(const struct profile *p, unsigned phases);
double profile_family_ms(const struct profile *p, unsigned phases, enum family family);

#endif
