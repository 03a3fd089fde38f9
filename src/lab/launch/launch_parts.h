/* launch_parts.h - private functions of the files of lab/launch. */
#ifndef LAB_LAUNCH_LAUNCH_PARTS_H
#define LAB_LAUNCH_LAUNCH_PARTS_H

#include "lab/launch/launch.h"

/* LAUNCH_BLOCK: threads of a block; each has one float. LAUNCH_WARMUP: launch_time discards at most
 * this many samples of each contender as warm-up. */
enum { LAUNCH_BLOCK = 256, LAUNCH_WARMUP = 2 };

enum status launch_run_gpu(struct launch_run *r, struct arena *a);
enum status launch_run_cpu(struct launch_run *r, struct arena *a);
/* Measures r->pipeline on the open device with this kernel. `from` is the share of the time limit
 * that is used already; the pipeline gets the rest. */
enum status launch_run_pipeline(struct launch_run *r, void *context, void *kernel, double from,
                                struct arena *a);
/* Times n contenders in turns, one call per sample, within `share` of the time limit. `from` is the
 * progress (0 to 1) before this call. */
enum status launch_time(struct launch_run *r, struct contender *c, int n, double from, double share,
                        const char *what, struct arena *a);
/* Fails with ST_NUMERIC if a y[i] is not first(i) + added, or just `added` if `first` is NULL. The
 * message has `way`. */
enum status launch_check(const float *y, int64_t n, double (*first)(int64_t), double added,
                         const char *way);

#endif
