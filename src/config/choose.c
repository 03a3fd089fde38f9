#include "config/config.h"

void config_choose(struct config *c, const struct config_facts *by)
{
    struct config_plan *p = &c->plan;
    bool types = p->dtype == PRECISION_AUTO, replays = p->replay == REPLAY_AUTO;
    /* Padding 65 characters to 128 changed a step from 3.41 to 3.36 ms (H100); padding 50257 tokens
     * to 50304 changed it from 27.6 to 25.2 ms (H200). Source: docs/log/gpu.md. */
    enum { PAD = 64 };
    if (c->model.pad_vocab == CONFIG_AUTO)
        c->model.pad_vocab = by->before ? by->before->model.pad_vocab : by->padding_pays ? PAD : 0;
    if (types && by->before)
        p->dtype = by->before->plan.dtype;
    else if (types)
        p->dtype = by->bfloat16_is_faster ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    /* poison and check_nan do work between kernels, which is impossible in a captured step. */
    bool looks_inside = p->poison || c->train.check_nan;
    if (replays && by->ranks_sync_on_host)
        p->replay = REPLAY_FALSE;
    else if (replays && by->before)
        p->replay = by->before->plan.replay;
    else if (replays)
        p->replay = by->captures && !looks_inside ? REPLAY_TRUE : REPLAY_FALSE;
}
