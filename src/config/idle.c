/* THE list of keys that have no effect beside the others, or not the expected one. */
#include "base/log.h"
#include "config/config.h"

#include <math.h>

void config_note_idle(const struct config *c, int64_t begun)
{
    const struct config_train *t = &c->train;
    long long most = t->max_iters, decay = t->lr_decay_iters;
    if (begun >= t->max_iters) return;
    if (c->model.dropout > 0 && lround(256 * c->model.dropout) == 0)
        log_info("dropout = %g acts as 0: it is rounded to a multiple of 1/256", c->model.dropout);
    if (t->decay_lr && t->warmup_iters >= t->max_iters)
        log_info("warmup_iters = %lld does not end within max_iters = %lld: the learning rate only "
                 "rises and does not reach learning_rate; lower warmup_iters",
                 (long long)t->warmup_iters, most);
    if (t->decay_lr && begun > 0 && decay < most && t->learning_rate > t->min_lr)
        log_info("the learning rate stays at min_lr = %g from iteration %lld to the end, because "
                 "lr_decay_iters = %lld; raise it to go on decaying",
                 t->min_lr, begun > decay ? (long long)begun : decay, decay);
}
