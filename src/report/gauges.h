/* gauges.h - telemetry of a run's device: the readings in log.jsonl, and their means where
 * summary.json lacks them. */
#ifndef REPORT_GAUGES_H
#define REPORT_GAUGES_H

#include "base/arena.h"
#include "result/run_summary.h"

struct gauges {
    struct gauge_reading *point;
    int points, capacity;
    double clock_max_mhz, power_limit_w; /* the last known values */
};

/* Adds one line of the log, of iteration `iter`. */
void gauges_take(struct gauges *g, const struct json_t *line, int64_t iter, struct arena *a);
/* Sets what is unknown to the means over the steady readings. */
void gauges_fill(const struct gauges *g, struct gauge_summary *to);
/* {"seconds": [], "iter": [], "utilization": [] ...}: all readings; engine/gauge.h bounds them. */
struct json_t *gauges_json(const struct gauges *g);

#endif
