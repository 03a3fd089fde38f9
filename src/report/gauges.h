/* gauges.h - telemetry of a run's device (clock, power, utilisation): the lines of kind "sample" of
 * log.jsonl, and their means in summary.json. */
#ifndef REPORT_GAUGES_H
#define REPORT_GAUGES_H

#include "base/arena.h"

struct json_t;

/* Unknown values are NAN. */
struct gauge_point {
    int64_t iter;
    /* From the begin of the first sample to the end of this one. Includes evaluations, but not the
     * time between a stop of the program and its continuation. */
    double seconds;
    double ms;   /* length of the interval that the sample covers */
    bool steady; /* during training, after the first steps */
    double utilization, clock_mhz, power_w, memory_bytes;
    double memory_utilization, sm_active, tensor_active, dram_active; /* percent */
    double throttled;                                                 /* share of the interval */
};

/* Means over the steady intervals. */
struct gauge_figures {
    double utilization, clock_mhz, power_w, joules_per_token, throttled;
    double memory_utilization, sm_active, tensor_active, dram_active;
    double others;            /* share of the time with other programs on the GPU */
    const char *throttled_by; /* "power limit, heat"; NULL: nothing, or unknown */
};

struct gauges {
    struct gauge_point *point;
    int points, capacity;
    double clock_max_mhz, power_limit_w; /* the last known values */
    struct gauge_figures figures;
};

/* Sets everything to unknown. */
void gauges_init(struct gauges *g);
/* Adds one line of the log, of iteration `iter`. */
void gauges_take(struct gauges *g, const struct json_t *line, int64_t iter, struct arena *a);
/* Computes the means: from "gauges" of the summary, or from the points if that is NULL. */
void gauges_conclude(struct gauges *g, const struct json_t *summary, struct arena *a);
/* {"seconds": [], "iter": [], "utilization": [] ...}: all samples; engine/gauge.h bounds them. */
struct json_t *gauges_json(const struct gauges *g);

#endif
