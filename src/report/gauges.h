/* gauges.h - what a run's device said of itself while it trained: the lines of kind "sample" of log.jsonl, and what
 * summary.json makes of them. */
#ifndef REPORT_GAUGES_H
#define REPORT_GAUGES_H

#include "base/arena.h"

struct json_t;

/* What is not known is NAN. */
struct gauge_point {
    int64_t iter;
    double
        seconds; /* at its end, since the first one began: evaluations are in it, pauses of the program are not */
    double ms;   /* for which it stands */
    bool steady; /* training, its first steps over */
    double utilization, clock_mhz, power_w, memory_bytes;
    double throttled; /* share of its time */
};

/* Means over the steady time. */
struct gauge_figures {
    double utilization, clock_mhz, power_w, joules_per_token, throttled;
    const char *throttled_by; /* "power limit, heat"; NULL: nothing, or it is not known */
};

struct gauges {
    struct gauge_point *point;
    int points, capacity;
    double clock_max_mhz, power_limit_w; /* the last that were told */
    struct gauge_figures figures;
};

/* Nothing is known. */
void gauges_init(struct gauges *g);
/* One line of the log, of that iteration. */
void gauges_take(struct gauges *g, const struct json_t *line, int64_t iter, struct arena *a);
/* The figures: those of the summary (its member "gauges", NULL: there is none), else from the points. */
void gauges_conclude(struct gauges *g, const struct json_t *summary, struct arena *a);
/* {"seconds": [], "iter": [], "utilization": [] ...}, of at most `most` points each, means of neighbours. */
struct json_t *gauges_json(const struct gauges *g, int most);

#endif
