#include "train/learner.h"

#include "train/device.h"
#include "train/lr.h"
#include "train/optim.h"
#include "train/weights.h"

#include <math.h>

static enum status open_parts(struct learner *l, unsigned more, struct arena *a)
{
    const struct config *c = l->config;
    unsigned kinds = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE | more;
    if (c->train.gradient_accumulation_steps > 1) kinds |= 1u << GRAPH_MICRO_MORE;
    int64_t B = c->data.batch_size, T = c->model.block_size;
    TRY(model_check_vocabulary(&c->model, l->dataset.vocabulary.size));
    TRY(loader_init(&l->loader, &l->dataset, SPLIT_TRAIN, RNG_TRAIN_BATCH, (uint32_t)c->train.seed,
                    B, T));
    struct loader validation; /* a text too short is said before memory is asked for */
    TRY(loader_init(&validation, &l->dataset, SPLIT_VAL, RNG_EVAL_BATCH, 0, B, T));
    TRY(engine_open(&l->engine, c, l->dataset.vocabulary.size, kinds, device_backend(c), a));
    stepper_init(&l->stepper, &l->engine, a);
    batch_init(&l->batch, B, T, a);
    if (c->train.check_nan) l->hooks = find_nan_hooks(ARENA_NEW(a, struct find_nan, 1));
    return weights_draw(&l->engine);
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
    stepper_close(&l->stepper);
    engine_close(&l->engine);
    dataset_close(&l->dataset);
}

static enum status check_number(const char *what, double x)
{
    if (isfinite(x)) return ST_OK;
    return fail(ST_NUMERIC,
                "%s is %g: run again with --check_nan=true to see which operator it comes from",
                what, x);
}

static void feed_update(struct learner *l, int64_t iter)
{
    const struct optimizer *o = optimizer_of(l->config);
    struct stepper *s = &l->stepper;
    for (int i = 0; i < o->inputs; i++) {
        float x = (float)o->input[i].at(&l->config->train, iter);
        stepper_feed(s, s->micro_steps, o->input[i].name, &x, sizeof x);
    }
}

enum status learner_start(struct learner *l, int64_t iter)
{
    struct stepper *s = &l->stepper;
    for (int64_t run = 0; run < s->micro_steps; run++) {
        l->loader.next = iter * s->micro_steps + run;
        batch_feed_step(&l->batch, &l->loader, s, run, l->loader.next);
    }
    feed_update(l, iter);
    enum status st = stepper_start(s, &l->hooks);
    return st == ST_OK ? st : fail_in(st, "iteration %lld", (long long)iter);
}

static enum status finish(struct learner *l, struct step_result *ret)
{
    TRY(stepper_wait(&l->stepper, ret));
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

int64_t learner_lead(const struct learner *l)
{
    return l->hooks.after ? 0 : stepper_lead(&l->stepper);
}
