/* bench_beside.h - one configuration: a training step beside its own matrix products, interleaved. */
#ifndef VIEW_BENCH_BESIDE_H
#define VIEW_BENCH_BESIDE_H

#include "base/arena.h"

struct config;

/* Times and prints; `vocab` as planned_vocabulary leaves it. */
enum status bench_beside(const struct config *c, int64_t vocab, int warmup, int steps, bool json,
                         struct arena *a);

#endif
