/* collect.h - runs profiled steps and collects activities by node; private to profile/. */
#ifndef PROFILE_COLLECT_H
#define PROFILE_COLLECT_H

#include "profile/profile.h"

/* Marks of activities: consecutive numbers for the nodes of all plans of a step. */
struct marks {
    const struct engine *engine;
    int first[GRAPH_COUNT]; /* the mark of the plan's node 0; -1: not a plan of a step */
    int marks;
    int per_step; /* kernels per step */
};
struct marks marks_of(const struct engine *e);
int mark_of(const struct marks *m, const struct plan *p, int node);
enum graph_kind mark_kind(const struct marks *m, int mark, int *ret_node);
/* Whether the operator of a mark communicates with other ranks. */
bool mark_communicates(const struct marks *m, int mark);

/* --- steps.c: steps in a device's trace ------------------------------------------------------- */

/* The mark of the copies to the device for step `iteration`, before its first kernel. */
int steps_mark(const struct marks *m, int iteration);
struct seen_step {
    struct profile_span span;
    int iteration;
};
/* Finds at most `most` complete steps in a trace, from iteration `first` on. A step is complete
 * only if another one follows. A step with an unmatched replay is skipped, because it may be two.
 * Sets marks of steps_mark to -1. */
int steps_find(const struct marks *m, struct trace *t, int first, struct seen_step *ret, int most);

/* Work of the host's threads in one kernel, summed over all steps. */
struct mark_threads {
    int64_t busy_ns, busiest_ns; /* of all threads together; of the busiest one */
    int64_t regions;             /* 0: none was observed */
    bool unseen;
};

/* A kernel with its hardware counters. */
struct counted_kernel {
    int mark;
    const char *name;
    struct kernel_counters counters;
};

struct collected {
    struct marks marks;
    struct trace trace;        /* every activity has a mark of `marks`, or -1 */
    struct trace opening;      /* calls before the profiled steps alone */
    struct profile_span *step; /* by the clock of the activities */
    int steps;
    struct mark_threads *threads;            /* per mark; NULL: not observed */
    double *plain_ms, *watched_ms, *host_ms; /* per step: unprofiled, profiled, launch time */
    int plain_steps, watched_steps;
    double *ratio; /* profiled over unprofiled time of neighboring steps */
    int ratios;
    const struct profile_action *action;
    int64_t actions;
    const struct profile_thread_span *thread_span; /* of the host's threads; NULL: none */
    int64_t thread_spans;
    struct counted_kernel *counted; /* of one step, in the order of the launches */
    int64_t counted_kernels;
};

/* Also fills in how the profile was measured in `p`. */
enum status collect(struct engine *e, const struct profile_options *o, struct profile *p,
                    struct collected *ret, struct arena *a);

/* --- counters.c: hardware counters of a step's kernels ---------------------------------------- */

/* Runs two further steps, from `iteration` on. What prevents counters is stated in `p`. */
void counters_collect(struct random_step *n, int iteration, struct collected *c, struct profile *p,
                      struct arena *a);
/* Gives the rows their counters. */
void counters_join(const struct collected *c, struct profile *p);

/* --- chunks.c: steps of one turn, or neighboring steps --------------------------------------- */

enum { CHUNKS_MOST = 96, CHUNKS_APART = 24 };
/* Waits for a turn, after it noted the steps so far as a chunk. `left` and `ms`: turn_report. */
enum status chunks_take_turn(const struct profile_options *o, struct profile *p, int plain,
                             int steps, int64_t left, double ms, struct arena *a);
/* Without turns: divides the steps. */
void chunks_divide(struct profile *p, int plain, struct arena *a);

/* --- host.c: actions of the host, also sent to an attached profiler as NVTX ranges ------------ */

struct host_watch;
/* Records, and sends ranges, only between host_watch_begin and host_watch_end. */
struct host_watch *host_watch_new(const struct marks *m, struct arena *a);
/* Discards earlier records and reserves space for `steps` steps. */
void host_watch_events(struct host_watch *w, int steps);
/* random_step reports its parts here. Iteration `iteration` is step `step`; the last, `end` - 1. */
void host_watch_begin(struct host_watch *w, struct random_step *n, int iteration, int step,
                      int end);
void host_watch_end(struct host_watch *w, struct random_step *n);
/* Around the launch of a kernel; around the kernel itself if the host is the device. */
void host_watch_before(struct host_watch *w, int mark);
void host_watch_after(struct host_watch *w);
/* `kept`: the final number of each step, -1: it is left out. */
void host_watch_take(struct host_watch *w, const int *kept, struct collected *ret);

/* --- pace.c: how many steps fit in the time limit, and progress ------------------------------- */

struct pace {
    const struct profile_options *o;
    const struct config *config;
    int64_t start_ns, step_begun_ns, looked_ns; /* step_begun_ns 0: no step is running */
    int cold;        /* first steps, which compile or capture: their time is not representative */
    int warm;        /* minimum of warm-up steps */
    int done, total; /* steps */
    double step_ms;  /* of the last step; 0: unknown */
    double cold_ms, warm_ms;         /* of the cold steps; of the other warm-up steps */
    double step_flops, flops, share; /* of a step; done in the current one; done / of a step */
    const char *what;
    bool chosen, warned;
};
void pace_init(struct pace *p, const struct profile_options *o, const struct engine *e, int warm);
/* Called around each step, and before each kernel if pace_is_slow and kernels are observed. */
void pace_begin(struct pace *p, const char *what);
void pace_look(struct pace *p, const struct plan *plan, int node);
void pace_end(struct pace *p, double ms);
bool pace_is_slow(const struct pace *p);
void pace_show(struct pace *p, const char *what);
/* Whether to run one more warm-up step. */
bool pace_warms(const struct pace *p);
/* The number of profiled steps; *ret_plain: of unprofiled ones. */
int pace_choose(struct pace *p, int *ret_plain);
/* The minimum of profiled steps for a profile: less only if fewer were requested. */
int pace_least(const struct pace *p);

/* --- watch.c: hooks that record when kernels ran ---------------------------------------------- */

struct watch;
/* Uses the host clock if the host is the device, else events. Allocates space for the steps. */
struct watch *watch_new(const struct marks *m, int steps, struct host_watch *host, struct arena *a);
struct plan_hooks watch_hooks(struct watch *w);
/* Before a step is launched, and when it is done; times by the host clock. */
void watch_step_begin(struct watch *w);
enum status watch_step_end(struct watch *w, int64_t start_ns, int64_t end_ns);
void watch_take(struct watch *w, struct collected *ret);

/* rows.c: joins the collected activities with the plans. */
void rows_make(const struct collected *c, struct profile *p, struct arena *a);

#endif
