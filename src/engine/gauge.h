/* gauge.h - telemetry of a device (backend/sample.h), sampled at intervals by a separate thread.
 *
 * A sample covers the time since the previous sample. A reading averages one or more samples. After
 * every GAUGE_READINGS readings, the number of samples per reading doubles, which limits the log of
 * a long run. Samples are also taken when work begins and ends. Work never waits for the thread. */
#ifndef ENGINE_GAUGE_H
#define ENGINE_GAUGE_H

#include "backend/sample.h"
#include "result/run_summary.h"

struct backend;
struct gauge;

enum { GAUGE_READINGS = 4096 };

/* Takes the first sample; fails if the device has no telemetry. `interval_ms` 0: no thread, samples
 * are taken only when work begins and ends. The context must outlive the gauge. */
enum status gauge_open(struct gauge **ret, const struct backend *b, void *context,
                       int64_t interval_ms);
/* Marks the beginning or the end of work, and takes a sample. Repeated calls change nothing. */
void gauge_work(struct gauge *g, bool working);
void gauge_at(struct gauge *g, int64_t iter);
/* Removes the oldest pending reading, or with `all`, if none is pending, the unfinished reading.
 * False if there is none. */
bool gauge_take(struct gauge *g, bool all, struct gauge_reading *ret);
/* Summarizes all work up to its last sample. */
struct gauge_summary gauge_summarize(struct gauge *g);
/* Whether a summary may be shown: GAUGE_ENOUGH samples, and work for that many intervals. */
enum { GAUGE_ENOUGH = 3 };
bool gauge_is_enough(const struct gauge_summary *g);
struct str;
/* "97 % busy, 1755 of 1980 MHz, 612 W", without unknown values. */
void gauge_print(const struct gauge_summary *g, struct str *s);
/* The last sample in a short form: "97 %  1755 MHz  612 W". */
void gauge_print_last(struct gauge *g, char *text, int bytes);
/* `g` may be NULL. */
void gauge_close(struct gauge *g);

#endif
