#include "train/learner.h"

#include "engine/device.h"
#include "engine/lr.h"
#include "engine/memory.h"
#include "engine/weights.h"

#include <math.h>

static enum status open_parts(struct learner *l, unsigned more, struct arena *a)
{
    const struct config *c = l->config;
    int64_t B = c->data.batch_size, T = c->model.block_size;
    TRY(model_check_vocabulary(&c->model, l->dataset.vocabulary.size));
    TRY(loader_init(&l->loader, &l->dataset, SPLIT_TRAIN, RNG_TRAIN_BATCH, (uint32_t)c->train.seed,
                    B, T));
    struct loader validation; /* reports a text that is too short before memory is allocated */
    TRY(loader_init(&validation, &l->dataset, SPLIT_VAL, RNG_EVAL_BATCH, 0, B, T));
    TRY(engine_open(&l->engine, c, l->dataset.vocabulary.size, memory_kinds(c, EXTENT_STEP) | more,
                    device_backend(c), a));
    sequence_init_step(&l->step, &l->engine, a);
    batch_init(&l->batch, B, T, a);
    if (c->train.check_nan) l->hooks = find_nan_hooks(ARENA_NEW(a, struct find_nan, 1));
    return weights_init(&l->engine);
}

enum status learner_open(struct learner *l, const struct config *c, unsigned more, struct arena *a)
{
    *l = (struct learner){.config = c};
    TRY(dataset_open(&l->dataset, c->data.data_dir, c->data.dataset, a));
    enum status st = open_parts(l, more, a);
    if (st != ST_OK) learner_close(l);
    return st;
}

void learner_close(struct learner *l)
{
    sequence_close(&l->step);
    engine_close(&l->engine);
    dataset_close(&l->dataset);
}

static enum status check_number(const char *what, double x)
{
    if (isfinite(x)) return ST_OK;
    return fail(ST_NUMERIC,
                "%s is %s: run again with --check_nan=true to find the operator that produced it",
                what, isnan(x) ? "NaN" : "infinite");
}

static enum status feed(struct learner *l, int64_t iter)
{
    const struct optimizer *o = optimizer_of(l->config);
    struct sequence *s = &l->step;
    int update = s->parts - 1;
    for (int part = 0; part < update; part++) {
        l->loader.next = iter * update + part;
        TRY(batch_feed(&l->batch, &l->loader, s, part, l->loader.next));
    }
    for (int i = 0; i < o->inputs; i++) {
        float x = (float)o->input[i].at(&l->config->train, iter);
        TRY(sequence_feed(s, update, o->input[i].name, &x, sizeof x));
    }
    return ST_OK;
}

enum status learner_start(struct learner *l, int64_t iter)
{
    TRY(feed(l, iter));
    enum status st = sequence_start(&l->step, &l->hooks);
    return st == ST_OK ? st : fail_in(st, "iteration %lld", (long long)iter);
}

static enum status finish(struct learner *l, struct step_result *ret)
{
    TRY(sequence_wait_step(&l->step, ret));
    TRY(check_number("the loss", ret->loss));
    return check_number("the norm of the gradient", ret->grad_norm);
}

enum status learner_finish(struct learner *l, int64_t iter, struct learner_step *ret_step)
{
    struct learner_step s = {.lr = lr_at(&l->config->train, iter)};
    enum status st = finish(l, &s.result);
    if (st != ST_OK) return fail_in(st, "iteration %lld", (long long)iter);
    *ret_step = s;
    return ST_OK;
}

int64_t learner_lookahead(const struct learner *l)
{
    return l->hooks.after ? 0 : sequence_lookahead(&l->step);
}
