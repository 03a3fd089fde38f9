/* THE list of settings that have no effect, or not the expected one, in a given run. */
#include "base/log.h"
#include "base/str.h"
#include "config/fields.h"

#include <math.h>

void config_log_ineffective(const struct config *c, int64_t begun)
{
    const struct config_train *t = &c->train;
    long long most = t->max_iters, decay = t->lr_decay_iters;
    struct str ignored = {0};
    nanogpt_print_ignored(c->ignored, &ignored);
    if (ignored.len) log_info("ignored, since Strobe has no such keys: %s", str_text(&ignored));
    str_release(&ignored);
    if (begun >= t->max_iters) return;
    if (c->model.dropout > 0 && lround(256 * c->model.dropout) == 0)
        log_info("dropout = %g has no effect: it is rounded to 0/256", c->model.dropout);
    if (t->decay_lr && t->warmup_iters >= t->max_iters)
        log_info(
            "the learning rate never reaches learning_rate, because the warm-up of warmup_iters = "
            "%lld is as long as the run (max_iters = %lld) or longer; lower warmup_iters",
            (long long)t->warmup_iters, most);
    if (t->decay_lr && begun > 0 && decay < most && t->learning_rate > t->min_lr)
        log_info(
            "the learning rate stays at min_lr = %g from iteration %lld to the end, because its "
            "decay ends at lr_decay_iters = %lld; raise lr_decay_iters to let it decay further",
            t->min_lr, begun > decay ? (long long)begun : decay, decay);
}
