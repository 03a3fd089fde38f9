/* collect.h - steps that run while somebody looks: activities with the node that they belong to; private
 * to profile/. */
#ifndef PROFILE_COLLECT_H
#define PROFILE_COLLECT_H

#include "profile/profile.h"

/* Nodes of all plans of a step, numbered through: what an activity's mark is. */
struct marks {
    const struct engine *engine;
    int first[GRAPH_COUNT]; /* the mark of the plan's node 0; -1: it is no plan of a step */
    int marks;
    int per_step; /* kernels that a step runs */
};
struct marks marks_of(const struct engine *e);
int mark_of(const struct marks *m, const struct plan *p, int node);
enum graph_kind mark_kind(const struct marks *m, int mark, int *ret_node);

/* --- steps.c: steps in a device's record ------------------------------------------------------------- */

/* The mark of what is given to the device, before its first kernel, for the step of that iteration. */
int steps_mark(const struct marks *m, int iteration);
struct seen_step {
    struct profile_span span;
    int iteration;
};
/* Whole steps in a record, at most `most`; of iteration `first` and later ones. The last one is whole only if another
 * follows, and one with a play that is not matched is none: it may be two. Marks of steps_mark are -1 afterwards. */
int steps_find(const struct marks *m, struct trace *t, int first, struct seen_step *ret, int most);

/* What threads of the host did in a kernel, all steps together. */
struct mark_threads {
    int64_t busy_ns, busiest_ns; /* of all threads together; of the one that was longest */
    int64_t regions;             /* 0: none was seen */
    bool unseen;
};

struct collected {
    struct marks marks;
    struct trace trace;        /* every activity has a mark of `marks`, or -1 */
    struct profile_span *step; /* in the clock of the activities */
    int steps;
    struct mark_threads *threads;            /* of each mark; NULL: not watched */
    double *plain_ms, *watched_ms, *host_ms; /* of as many steps */
    int plain_steps, watched_steps;
    double *ratio; /* of watched steps and the unwatched ones beside them */
    int ratios;
    const struct profile_deed *deed;
    int64_t deeds;
};

/* Fills in `p` all that is known of how it was taken, too. */
enum status collect(struct engine *e, const struct profile_options *o, struct profile *p,
                    struct collected *ret, struct arena *a);

/* --- host.c: what the host does meanwhile; a profiler that is attached hears it as ranges ------------ */

struct host_watch;
/* Nothing is noted, and nothing told, but between host_watch_begin and host_watch_end. */
struct host_watch *host_watch_new(const struct marks *m, struct arena *a);
/* Room for so many steps; what was noted is forgotten. */
void host_watch_room(struct host_watch *w, int steps);
/* random_step tells it the parts of steps. The step of iteration `iteration` is step number `step`, and so on, up to
 * number `end` - 1. */
void host_watch_begin(struct host_watch *w, struct random_step *n, int iteration, int step,
                      int end);
void host_watch_end(struct host_watch *w, struct random_step *n);
/* Around the start of a kernel; where the host is the device, around the kernel. */
void host_watch_before(struct host_watch *w, int mark);
void host_watch_after(struct host_watch *w);
/* `kept`: of each step the number it has now, -1: it is none. */
void host_watch_take(struct host_watch *w, const int *kept, struct collected *ret);

/* --- pace.c: how many steps there is time for, and what is said meanwhile ----------------------------- */

struct pace {
    const struct profile_options *o;
    const struct config *config;
    int64_t start_ns, step_begun_ns, looked_ns; /* step_begun_ns 0: none goes on */
    int cold;        /* the first steps, which compile or record: they tell nothing of the others */
    int warm;        /* steps that must be made before all others */
    int done, total; /* steps */
    double step_ms;  /* of the last step; 0: unknown */
    double cold_ms, warm_ms;         /* of the first; of the rest before the choice */
    double step_flops, flops, share; /* of a step; of the one that goes on; its part of it */
    const char *what;
    bool chosen, warned;
};
void pace_init(struct pace *p, const struct profile_options *o, const struct engine *e, int warm);
/* Before and after a step, and, where pace_is_slow and kernels are seen, before each kernel. */
void pace_begin(struct pace *p, const char *what);
void pace_look(struct pace *p, const struct plan *plan, int node);
void pace_end(struct pace *p, double ms);
bool pace_is_slow(const struct pace *p);
void pace_show(struct pace *p, const char *what);
/* Whether one more step is made before all others. */
bool pace_warms(const struct pace *p);
/* How many steps are watched; *ret_plain: how many are not. */
int pace_choose(struct pace *p, int *ret_plain);
/* Fewer watched steps are no profile, but if fewer were asked for. */
int pace_least(const struct pace *p);

/* --- watch.c: hooks that write down when kernels ran --------------------------------------------- */

struct watch;
/* By the host's clock, if the host is the device, else by its events. `a` holds room for so many steps. */
struct watch *watch_new(const struct marks *m, int steps, struct host_watch *host, struct arena *a);
struct plan_hooks watch_hooks(struct watch *w);
/* Before a step is started, and when it is done, by the host's clock. */
void watch_step_begin(struct watch *w);
enum status watch_step_end(struct watch *w, int64_t start_ns, int64_t end_ns);
void watch_take(struct watch *w, struct collected *ret);

/* rows.c: joins what was collected with what the plans say. */
void rows_make(const struct collected *c, struct profile *p, struct arena *a);

#endif
