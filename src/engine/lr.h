/* lr.h - the learning rate as a function of the iteration. */
#ifndef ENGINE_LR_H
#define ENGINE_LR_H

#include "config/config.h"

/* Linear warm-up over warmup_iters, then cosine decay to min_lr at lr_decay_iters, then constant.
 * Without decay_lr, always learning_rate. The first update is iteration 0. */
double lr_at(const struct config_train *c, int64_t iter);

#endif
