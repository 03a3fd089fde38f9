/* launch_parts.h - what the files of lab/launch share. Private to lab/launch. */
#ifndef LAB_LAUNCH_LAUNCH_PARTS_H
#define LAB_LAUNCH_LAUNCH_PARTS_H

#include "lab/launch/launch.h"

/* LAUNCH_BLOCK: threads of a block, which have a float each. LAUNCH_WARMUP: samples at most that
 * launch_time takes of each contender before those that count. */
enum { LAUNCH_BLOCK = 256, LAUNCH_WARMUP = 2 };

enum status launch_run_gpu(struct launch_run *r, struct arena *a);
enum status launch_run_cpu(struct launch_run *r, struct arena *a);
/* On the open device with that kernel, in the share of the limit that is left from `from` on. */
enum status launch_run_pipeline(struct launch_run *r, void *context, void *kernel, double from,
                                struct arena *a);
/* Times all of them in turns, one sample a call, within a share of the limit; `from` is that of
 * the progress before it. */
enum status launch_time(struct launch_run *r, struct contender *c, int n, double from, double share,
                        const char *what, struct arena *a);
/* Whether each of n floats is `first` of its index, plus `added`; the failure names the way. */
enum status launch_check(const float *y, int64_t n, double (*first)(int64_t), double added,
                         const char *way);

#endif
