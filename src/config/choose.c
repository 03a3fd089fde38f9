#include "config/config.h"

void config_choose(struct config *c, const struct config_chooser *by)
{
    struct config_plan *p = &c->plan;
    bool types = p->dtype == PRECISION_AUTO, replays = p->replay == REPLAY_AUTO;
    if (types && by->before)
        p->dtype = by->before->plan.dtype;
    else if (types)
        p->dtype = by->bfloat16_is_faster ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    /* Both look at single kernels, which a captured step does not show. */
    bool looks_inside = p->poison || c->train.check_nan;
    if (replays && by->before)
        p->replay = by->before->plan.replay;
    else if (replays)
        p->replay = by->records && !looks_inside ? REPLAY_TRUE : REPLAY_FALSE;
}
