#include "engine/lr.h"

#include <math.h>

double lr_at(const struct config_train *c, int64_t iter)
{
    if (!c->decay_lr) return c->learning_rate;
    if (iter < c->warmup_iters)
        return c->learning_rate * (double)(iter + 1) / (double)(c->warmup_iters + 1);
    if (iter >= c->lr_decay_iters) return c->min_lr;
    double share = (double)(iter - c->warmup_iters) / (double)(c->lr_decay_iters - c->warmup_iters);
    return c->min_lr + 0.5 * (1 + cos(M_PI * share)) * (c->learning_rate - c->min_lr);
}
