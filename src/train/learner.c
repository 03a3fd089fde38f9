#include "train/learner.h"

#include "backend/communicator.h"
#include "engine/device.h"
#include "engine/lr.h"
#include "engine/memory.h"
#include "engine/weights.h"
#include "train/ranks.h"

#include <math.h>
#include <string.h>

static enum status open_parts(struct learner *l, unsigned more, struct communicator *communicator,
                              struct arena *a)
{
    const struct config *c = l->config;
    int64_t B = c->data.batch_size, T = c->model.block_size;
    TRY(model_check_vocabulary(&c->model, l->dataset.vocabulary.size));
    TRY(loader_init(&l->loader, &l->dataset, SPLIT_TRAIN, RNG_TRAIN_BATCH, (uint32_t)c->train.seed,
                    B, T));
    struct loader validation; /* fails on a text that is too short, before memory is allocated */
    TRY(loader_init(&validation, &l->dataset, SPLIT_VAL, RNG_EVAL_BATCH, 0, B, T));
    TRY(engine_open_rank(&l->engine, c, l->dataset.vocabulary.size,
                         memory_kinds(c, EXTENT_STEP) | more, device_backend(c), communicator, a));
    sequence_init_step(&l->step, &l->engine, a);
    batch_init(&l->batch, B, T, a);
    l->results = ARENA_NEW(a, float, l->step.parts *communicator_ranks(communicator));
    if (c->train.check_nan) l->hooks = find_nan_hooks(ARENA_NEW(a, struct find_nan, 1));
    return weights_init(&l->engine);
}

enum status learner_open(struct learner *l, const struct config *c, unsigned more,
                         struct communicator *communicator, struct arena *a)
{
    *l = (struct learner){.config = c};
    TRY(dataset_open(&l->dataset, c->data.data_dir, c->data.dataset, a));
    enum status st = open_parts(l, more, communicator, a);
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

/* The index of the micro-batch of a micro-step; the ranks get micro-batches round-robin. */
static int64_t micro_batch(const struct learner *l, int64_t iter, int part)
{
    const struct communicator *c = l->engine.communicator;
    int64_t all = l->config->train.gradient_accumulation_steps;
    return iter * all + part * communicator_ranks(c) + communicator_rank(c);
}

static enum status feed(struct learner *l, int64_t iter)
{
    const struct optimizer *o = optimizer_of(l->config);
    struct sequence *s = &l->step;
    int update = s->parts - 1;
    for (int part = 0; part < update; part++) {
        l->loader.next = micro_batch(l, iter, part);
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
    struct communicator *c = l->engine.communicator;
    TRY(feed(l, iter));
    TRY(crew_order(c, ORDER_START, iter, 0));
    enum status st = sequence_start(&l->step, &l->hooks);
    if (st == ST_OK) return ST_OK;
    st = fail_in(st, "iteration %lld", (long long)iter);
    communicator_fail(c, st);
    return st;
}

/* Collects the results of all ranks on every rank. Fails if their gradient norms differ. */
static enum status gather(struct learner *l, int64_t iter)
{
    struct communicator *c = l->engine.communicator;
    int parts = l->step.parts, ranks = communicator_ranks(c);
    const float *result, *norm = l->results + parts - 1;
    TRY(crew_order(c, ORDER_FINISH, iter, 0));
    enum status st = sequence_wait(&l->step, &result);
    if (st != ST_OK) {
        communicator_fail(c, st);
        return st;
    }
    if (!c) {
        memcpy(l->results, result, (size_t)parts * sizeof *result);
        return ST_OK;
    }
    TRY(communicator_gather(c, result, parts * (int64_t)sizeof *result, l->results));
    for (int r = 1; r < ranks; r++)
        if (memcmp(norm, norm + r * parts, sizeof *norm) != 0)
            return fail(ST_DEVICE,
                        "the ranks have different gradients: their norm is %g at rank 0 and %g at "
                        "rank %d",
                        (double)*norm, (double)norm[r * parts], r);
    return ST_OK;
}

/* Adds the losses in the order of the micro-batches, so that the number of ranks is irrelevant. */
static enum status finish(struct learner *l, int64_t iter, struct step_result *ret)
{
    int micro_steps = l->step.parts - 1, ranks = communicator_ranks(l->engine.communicator);
    double sum = 0;
    TRY(gather(l, iter));
    for (int part = 0; part < micro_steps; part++)
        for (int r = 0; r < ranks; r++) sum += (double)l->results[r * l->step.parts + part];
    *ret = (struct step_result){sum / (micro_steps * ranks), (double)l->results[micro_steps]};
    TRY(check_number("the loss", ret->loss));
    return check_number("the norm of the gradient", ret->grad_norm);
}

enum status learner_finish(struct learner *l, int64_t iter, struct learner_step *ret_step)
{
    struct learner_step s = {.lr = lr_at(&l->config->train, iter)};
    enum status st = finish(l, iter, &s.result);
    if (st != ST_OK) return fail_in(st, "iteration %lld", (long long)iter);
    *ret_step = s;
    return ST_OK;
}

int64_t learner_lookahead(const struct learner *l)
{
    return l->hooks.after ? 0 : sequence_lookahead(&l->step);
}
