/* bench_beside.h - one configuration: a training step and its matmuls alone, interleaved. */
#ifndef VIEW_BENCH_BESIDE_H
#define VIEW_BENCH_BESIDE_H

#include "base/arena.h"

struct config;

/* Times and prints; `vocab` is the result of planned_vocabulary. */
enum status bench_step_view(const struct config *c, int64_t vocab, int warmup, int steps, bool json,
                            struct arena *a);

#endif
