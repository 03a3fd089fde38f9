#include "config/config.h"

void config_choose(struct config *c, const struct config_facts *by)
{
    struct config_plan *p = &c->plan;
    /* Padding 65 characters to 128 changed a step from 3.41 to 3.36 ms (H100); padding 50257 tokens
     * to 50304 changed it from 27.6 to 25.2 ms (H200). Source: docs/log/gpu.md. */
    enum { PAD = 64 };
    const struct config *before = by->before;
    if (c->model.pad_vocab == CONFIG_AUTO && before) c->model.pad_vocab = before->model.pad_vocab;
    if (c->model.pad_vocab == CONFIG_AUTO) c->model.pad_vocab = by->padding_pays ? PAD : 0;
    if (p->dtype == PRECISION_AUTO && before) p->dtype = before->plan.dtype;
    if (p->dtype == PRECISION_AUTO)
        p->dtype = by->bfloat16_is_faster ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
    /* poison and check_nan do work between kernels, which is impossible in a captured step. */
    bool looks_inside = p->poison || c->train.check_nan;
    if (p->replay == REPLAY_AUTO)
        p->replay =
            by->captures && !by->ranks_sync_on_host && !looks_inside ? REPLAY_TRUE : REPLAY_FALSE;
}
