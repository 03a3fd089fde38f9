#include "train/learner.h"

#include "train/device.h"
#include "train/lr.h"
#include "train/weights.h"

#include <math.h>

enum { LEARNER_LOSSES = 16 };

static enum status open_parts(struct learner *l, unsigned more, struct arena *a)
{
    const struct config *c = l->config;
    unsigned kinds = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE | more;
    if (c->train.gradient_accumulation_steps > 1) kinds |= 1u << GRAPH_MICRO_MORE;
    int64_t B = c->data.batch_size, T = c->model.block_size;
    TRY(loader_init(&l->loader, &l->dataset, SPLIT_TRAIN, RNG_TRAIN_BATCH, (uint32_t)c->train.seed,
                    B, T));
    struct loader validation; /* a text too short is said before memory is asked for */
    TRY(loader_init(&validation, &l->dataset, SPLIT_VAL, RNG_EVAL_BATCH, 0, B, T));
    TRY(engine_open(&l->engine, c, l->dataset.vocabulary.size, kinds, device_backend(c), a));
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

/* What a step leaves behind; filled when the device is done. */
struct readings {
    float loss[LEARNER_LOSSES], norm;
};

/* The losses of more micro-steps than there is room for are waited for in between. */
static enum status accumulate(struct learner *l, int64_t iter, struct readings *r, double *ret_sum)
{
    int64_t n = l->config->train.gradient_accumulation_steps;
    *ret_sum = 0;
    for (int64_t micro = 0; micro < n; micro++) {
        enum graph_kind kind = micro ? GRAPH_MICRO_MORE : GRAPH_MICRO;
        int slot = (int)(micro % LEARNER_LOSSES);
        l->loader.next = iter * n + micro;
        TRY(batch_feed(&l->batch, &l->loader, &l->engine, kind, iter * n + micro));
        TRY(engine_run(&l->engine, kind, &l->hooks));
        TRY(engine_read_later(&l->engine, kind, "loss", &r->loss[slot], sizeof r->loss[slot]));
        if (slot < LEARNER_LOSSES - 1 || micro == n - 1) continue;
        TRY(engine_sync(&l->engine));
        for (int i = 0; i < LEARNER_LOSSES; i++) *ret_sum += (double)r->loss[i];
    }
    return ST_OK;
}

static enum status update(struct learner *l, int64_t iter, double lr, struct readings *r)
{
    const struct config_train *c = &l->config->train;
    struct engine *e = &l->engine;
    double t = (double)(iter + 1);
    float rate = (float)lr, bias1 = (float)(1 - pow(c->beta1, t)),
          bias2 = (float)(1 - pow(c->beta2, t));
    TRY(engine_feed(e, GRAPH_UPDATE, "lr", &rate, sizeof rate));
    TRY(engine_feed(e, GRAPH_UPDATE, "bias1", &bias1, sizeof bias1));
    TRY(engine_feed(e, GRAPH_UPDATE, "bias2", &bias2, sizeof bias2));
    TRY(engine_run(e, GRAPH_UPDATE, &l->hooks));
    return engine_read_later(e, GRAPH_UPDATE, "grad_norm", &r->norm, sizeof r->norm);
}

/* The host waits for the device once. */
static enum status step(struct learner *l, int64_t iter, struct learner_step *s)
{
    int64_t n = l->config->train.gradient_accumulation_steps;
    struct readings r = {.norm = NAN};
    double sum = 0;
    TRY(accumulate(l, iter, &r, &sum));
    TRY(update(l, iter, s->lr, &r));
    TRY(engine_sync(&l->engine));
    for (int64_t i = 0; i <= (n - 1) % LEARNER_LOSSES; i++) sum += (double)r.loss[i];
    s->loss = sum / (double)n;
    s->grad_norm = (double)r.norm;
    TRY(check_number("the loss", s->loss));
    return check_number("the norm of the gradient", s->grad_norm);
}

enum status learner_step(struct learner *l, int64_t iter, struct learner_step *ret_step)
{
    struct learner_step s = {.lr = lr_at(&l->config->train, iter)};
    enum status st = step(l, iter, &s);
    if (st != ST_OK) return fail_in(st, "iteration %lld", (long long)iter);
    *ret_step = s;
    return ST_OK;
}
