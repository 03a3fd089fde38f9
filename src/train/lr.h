/* lr.h - the learning rate as a function of the iteration. */
#ifndef TRAIN_LR_H
#define TRAIN_LR_H

#include "config/config.h"

/* Rises over warmup_iters, falls along a cosine to min_lr at lr_decay_iters and stays there; constant
 * without decay_lr. The first update is that of iteration 0. */
double lr_at(const struct config_train *c, int64_t iter);

#endif
