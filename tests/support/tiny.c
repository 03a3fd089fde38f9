#include "../support/tiny.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "backend/backend.h"
#include "base/rng.h"
#include "base/threads.h"
#include "engine/optimizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct config tiny_config(void)
{
    return (struct config){
        .model = {.n_layer = 2, .n_head = 2, .n_embd = 32, .block_size = 16, .gelu = GELU_ERF},
        .data = {.dataset = "tiny", .data_dir = "data", .batch_size = 3},
        .train = {.seed = 1337,
                  .gradient_accumulation_steps = 1,
                  .learning_rate = 1e-3,
                  .beta1 = 0.9,
                  .beta2 = 0.99,
                  .weight_decay = 0.1,
                  .grad_clip = 1},
        .plan = {.device = DEVICE_CPU,
                 .fusion = FUSION_FULL,
                 .flash = true,
                 .reuse = true,
                 .threads = 1}, /* more threads would be slower on such small tensors */
    };
}

void tiny_open_bare(struct tiny *t, const struct config *c, int64_t vocab, unsigned kinds)
{
    *t = (struct tiny){.config = *c};
    threads_set(c->plan.threads);
    hand_ok(engine_open(&t->engine, &t->config, vocab, kinds, "cpu", &t->arena));
}

void tiny_open(struct tiny *t, const struct config *c, unsigned kinds)
{
    tiny_open_bare(t, c, TINY_VOCAB, kinds);
    float *weights = tiny_range(t, STORAGE_WEIGHTS);
    if (weights) model_init_weights(&t->engine.program.model, weights);
    hand_ok(engine_refresh(&t->engine));
}

bool tiny_packs(enum precision dtype)
{
    struct config c = tiny_config();
    struct arena a = {0};
    struct engine e;
    c.plan.dtype = dtype;
    c.plan.pack_weights = PACKING_TRUE;
    enum status st = engine_open(&e, &c, TINY_VOCAB, 1u << GRAPH_MICRO, "cpu", &a);
    if (st == ST_OK) engine_close(&e);
    arena_release(&a);
    if (st != ST_UNSUPPORTED) hand_ok(st);
    return st == ST_OK;
}

void tiny_need_packing(enum precision dtype)
{
    if (!tiny_packs(dtype)) SKIP("oneDNN packs no weights of this type on this processor");
}

void tiny_close(struct tiny *t)
{
    engine_close(&t->engine);
    arena_release(&t->arena);
}

/* From a random start, each token is mostly the last token plus three. */
void tiny_feed(struct tiny *t, enum graph_kind kind, int32_t step)
{
    int64_t B = t->config.data.batch_size, T = t->config.model.block_size;
    int32_t *tokens = ARENA_NEW(&t->arena, int32_t, B * T);
    int32_t *targets = ARENA_NEW(&t->arena, int32_t, B * T);
    int32_t *positions = ARENA_NEW(&t->arena, int32_t, T);
    for (int64_t b = 0; b < B; b++) {
        int64_t token = rng_below(5, RNG_TEST, (uint32_t)step, (uint64_t)(b * 1000), TINY_VOCAB);
        for (int64_t i = 0; i < T; i++) {
            uint64_t at = (uint64_t)(b * 1000 + i + 1);
            tokens[b * T + i] = (int32_t)token;
            token = (token + 3) % TINY_VOCAB;
            if (rng_below(6, RNG_TEST, (uint32_t)step, at, 5) == 0)
                token = rng_below(7, RNG_TEST, (uint32_t)step, at, TINY_VOCAB);
            targets[b * T + i] = (int32_t)token;
        }
    }
    for (int64_t i = 0; i < T; i++) positions[i] = (int32_t)i;
    struct engine *e = &t->engine;
    hand_ok(plan_feed(&e->program.plan[kind], "tokens", tokens, B * T * 4));
    hand_ok(plan_feed(&e->program.plan[kind], "targets", targets, B * T * 4));
    hand_ok(plan_feed(&e->program.plan[kind], "positions", positions, T * 4));
    hand_ok(plan_feed(&e->program.plan[kind], "step", &step, 4));
}

float tiny_loss(struct tiny *t, enum graph_kind kind, int32_t step)
{
    float loss;
    tiny_feed(t, kind, step);
    hand_ok(plan_run(&t->engine.program.plan[kind], NULL));
    hand_ok(plan_read(&t->engine.program.plan[kind], "loss", 0, &loss, sizeof loss));
    return loss;
}

float tiny_update(struct tiny *t, int64_t iteration, double lr)
{
    const struct optimizer *o = optimizer_of(&t->config);
    struct engine *e = &t->engine;
    float norm;
    for (int i = 0; i < o->inputs; i++) {
        bool rate = !strcmp(o->input[i].name, "lr");
        float x = (float)(rate ? lr : o->input[i].at(&t->config.train, iteration - 1));
        hand_ok(plan_feed(&e->program.plan[GRAPH_UPDATE], o->input[i].name, &x, sizeof x));
    }
    hand_ok(plan_run(&e->program.plan[GRAPH_UPDATE], NULL));
    hand_ok(plan_read(&e->program.plan[GRAPH_UPDATE], "grad_norm", 0, &norm, sizeof norm));
    return norm;
}

float tiny_step(struct tiny *t, int32_t step, double lr)
{
    float loss = tiny_loss(t, GRAPH_MICRO, step);
    tiny_update(t, step + 1, lr);
    return loss;
}

float *tiny_range(const struct tiny *t, enum storage storage)
{
    return t->engine.storage.base[storage];
}

float *tiny_parameter(const struct tiny *t, enum storage storage, const struct parameter *p)
{
    return tiny_range(t, storage) + p->offset;
}

float *tiny_copy(const struct tiny *t, enum storage storage, struct arena *a)
{
    int64_t n = t->engine.program.model.elements;
    float *copy = ARENA_NEW(a, float, n);
    memcpy(copy, tiny_range(t, storage), (size_t)t->engine.storage.bytes[storage]);
    return copy;
}

enum status tiny_learn(struct learner *l, int64_t iter, struct learner_step *ret_step)
{
    TRY(learner_start(l, iter));
    return learner_finish(l, iter, ret_step);
}
