#include "measure/noise.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "train/device.h"
#include "train/weights.h"

static const int64_t ID = sizeof(int32_t);

static int64_t positions(const struct noise *n)
{
    return n->engine->model.config.block_size;
}

static int64_t count(const struct noise *n)
{
    return n->engine->config->data.batch_size * positions(n);
}

static unsigned kinds(const struct config *c)
{
    unsigned training = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;
    return c->train.gradient_accumulation_steps > 1 ? training | 1u << GRAPH_MICRO_MORE : training;
}

enum status noise_bytes(const struct config *c, int64_t vocab, int64_t *ret_bytes)
{
    struct arena a = {0};
    struct engine e;
    enum status st = engine_plan(&e, c, vocab, kinds(c), device_backend(c), &a);
    if (st == ST_OK) {
        *ret_bytes = engine_bytes(&e);
        engine_close(&e);
    }
    arena_release(&a);
    return st;
}

enum status noise_check_room(int64_t bytes, int64_t room)
{
    char needed[32], there[32];
    if (room < 0 || bytes <= room) return ST_OK;
    return fail(ST_UNSUPPORTED, "it needs %s of memory, and %s are free",
                str_bytes(needed, (double)bytes), str_bytes(there, (double)room));
}

enum status noise_check(const struct config *c, int64_t vocab)
{
    struct device device;
    int64_t bytes;
    TRY(device_of(c, &device));
    TRY(noise_bytes(c, vocab, &bytes));
    return noise_check_room(bytes, device.backend->room(device.number));
}

enum status noise_open(struct engine *e, const struct config *c, int64_t vocab, struct arena *a)
{
    TRY(noise_check(c, vocab));
    return engine_open(e, c, vocab, kinds(c), device_backend(c), a);
}

static int64_t micro_steps(const struct noise *n)
{
    return n->engine->config->train.gradient_accumulation_steps;
}

enum status noise_init(struct noise *n, struct engine *e, struct arena *a)
{
    *n = (struct noise){.engine = e};
    n->tokens = ARENA_NEW(a, int32_t, 2 * micro_steps(n) * count(n));
    n->positions = ARENA_NEW(a, int32_t, positions(n));
    for (int64_t i = 0; i < positions(n); i++) n->positions[i] = (int32_t)i;
    return weights_draw(e);
}

/* Tokens and targets of a micro-step. */
static int32_t *tokens_of(struct noise *n, int64_t micro)
{
    return n->tokens + 2 * micro * count(n);
}

static void draw(struct noise *n, int64_t micro, int iteration)
{
    int32_t *token = tokens_of(n, micro);
    for (int64_t i = 0; i < 2 * count(n); i++)
        token[i] = (int32_t)rng_below(1, RNG_TEST, (uint32_t)iteration, (uint64_t)i,
                                      n->engine->model.vocab);
}

static enum status feed_update(struct engine *e)
{
    float lr = 1e-4f, bias1 = 0.1f, bias2 = 0.05f;
    TRY(engine_feed(e, GRAPH_UPDATE, "lr", &lr, sizeof lr));
    TRY(engine_feed(e, GRAPH_UPDATE, "bias1", &bias1, sizeof bias1));
    return engine_feed(e, GRAPH_UPDATE, "bias2", &bias2, sizeof bias2);
}

static enum status feed(struct noise *n, enum graph_kind kind, int64_t micro, int iteration)
{
    struct engine *e = n->engine;
    int32_t step = iteration, *tokens = tokens_of(n, micro);
    TRY(engine_feed(e, kind, "tokens", tokens, count(n) * ID));
    TRY(engine_feed(e, kind, "targets", tokens + count(n), count(n) * ID));
    TRY(engine_feed(e, kind, "positions", n->positions, positions(n) * ID));
    return engine_feed(e, kind, "step", &step, sizeof step);
}

enum status noise_feed(struct noise *n, enum graph_kind kind, int iteration)
{
    if (kind == GRAPH_UPDATE) return feed_update(n->engine);
    draw(n, 0, iteration);
    return feed(n, kind, 0, iteration);
}

/* As training does it: everything is started before the host waits, once. */
static enum status start(struct noise *n, int iteration, const struct plan_hooks *hooks)
{
    struct engine *e = n->engine;
    for (int64_t i = 0; i < micro_steps(n); i++) {
        enum graph_kind kind = i == 0 ? GRAPH_MICRO : GRAPH_MICRO_MORE;
        TRY(feed(n, kind, i, (int)(iteration * micro_steps(n) + i)));
        TRY(engine_run(e, kind, hooks));
        if (i == micro_steps(n) - 1)
            TRY(engine_read_later(e, kind, "loss", &n->loss, sizeof n->loss));
    }
    TRY(feed_update(e));
    return engine_run(e, GRAPH_UPDATE, hooks);
}

enum status noise_step(struct noise *n, int iteration, const struct plan_hooks *hooks,
                       double *ret_ms)
{
    for (int64_t i = 0; i < micro_steps(n); i++) draw(n, i, (int)(iteration * micro_steps(n) + i));
    int64_t from = clock_ns();
    TRY(start(n, iteration, hooks));
    TRY(engine_sync(n->engine));
    if (ret_ms) *ret_ms = clock_ms(from, clock_ns());
    return ST_OK;
}
