/* step_view.h - one configuration: a training step and its matmuls alone, interleaved. */
#ifndef VIEW_STEP_VIEW_H
#define VIEW_STEP_VIEW_H

#include "base/arena.h"

struct config;

/* Times and prints; `vocab` is the result of planned_vocabulary. */
enum status step_view_run(const struct config *c, int64_t vocab, int warmup, int steps, bool json,
                          struct arena *a);

#endif
