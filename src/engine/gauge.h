/* gauge.h - what a device says of itself (backend/sample.h), read at intervals beside the work by a thread of its own.
 *
 * A sample stands for the time since the one before. Several may make one reading, so that the log of a long run stays small: after
 * each GAUGE_READINGS readings twice as many samples go into one. When work begins and ends a sample is taken
 * at once, so what stands between is of that work alone. The thread's samples never make the work wait. */
#ifndef ENGINE_GAUGE_H
#define ENGINE_GAUGE_H

#include "backend/sample.h"

struct backend;
struct gauge;

enum { GAUGE_READINGS = 4096 };
enum gauge_value {
    GAUGE_UTILIZATION,
    GAUGE_CLOCK,
    GAUGE_POWER,
    GAUGE_MEMORY,
    GAUGE_TEMPERATURE,
    GAUGE_VALUES
};

/* "utilization", "clock_mhz" ...: in files */
const char *gauge_name(enum gauge_value v);

/* Some time, and what the samples of it say. */
struct gauge_reading {
    int64_t iter;                        /* at its end */
    double ms;                           /* for which it stands */
    bool working;                        /* the work was done meanwhile, not something else */
    double value[GAUGE_VALUES];          /* means over the time; -1: unknown */
    double clock_max_mhz, power_limit_w; /* at its end; -1: unknown */
    double throttled; /* share of the time in which a reason slowed the clock; -1: unknown */
    int throttle;     /* all reasons of that time */
};

/* The whole time of work. */
struct gauge_summary {
    double seconds;
    int samples;
    double sample_ms; /* that one took, the mean */
    struct {
        double mean, min, max; /* -1: unknown */
    } value[GAUGE_VALUES];     /* the mean of power is energy over time */
    double clock_max_mhz, power_limit_w;
    double energy_j;  /* the device's own count; without it, power times time; -1: unknown */
    double throttled; /* share of the time */
    double by[THROTTLE_COUNT];
};

/* Takes the first sample; a failure says why there is none to be had. `interval_ms` 0: no thread, samples are taken when work begins and ends
 * alone. The context must outlive the gauge. */
enum status gauge_open(struct gauge **ret, const struct backend *b, void *context,
                       int64_t interval_ms);
/* The work begins, or ends; what was begun already goes on. */
void gauge_work(struct gauge *g, bool working);
/* Where the work is. */
void gauge_at(struct gauge *g, int64_t iter);
/* The oldest reading that was not handed out; false: there is none. `all`: one that has only begun, too. */
bool gauge_take(struct gauge *g, bool all, struct gauge_reading *ret);
/* The last sample. */
struct device_sample gauge_last(struct gauge *g);
/* Of all time of work up to its last sample. */
struct gauge_summary gauge_summarize(struct gauge *g);
struct str;
/* "97 % busy, 1755 of 1980 MHz, 612 W"; nothing where nothing is known. */
void gauge_print(const struct gauge_summary *g, struct str *s);
/* The same of the last sample, for a line that is short: "97 %  1755 MHz  612 W". */
void gauge_print_last(struct gauge *g, char *text, int bytes);
/* NULL is closed already. */
void gauge_close(struct gauge *g);

#endif
