#include "measure/noise.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/room.h"
#include "base/str.h"
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
    enum status st = engine_plan(&e, c, vocab, kinds(c), engine_backend(c), &a);
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
    int64_t bytes;
    TRY(noise_bytes(c, vocab, &bytes));
    return noise_check_room(bytes, room_bytes());
}

enum status noise_open(struct engine *e, const struct config *c, int64_t vocab, struct arena *a)
{
    TRY(noise_check(c, vocab));
    return engine_open(e, c, vocab, kinds(c), engine_backend(c), a);
}

enum status noise_init(struct noise *n, struct engine *e, struct arena *a)
{
    *n = (struct noise){.engine = e};
    n->tokens = ARENA_NEW(a, int32_t, count(n));
    return weights_draw(e);
}

static enum status feed_update(struct engine *e)
{
    float lr = 1e-4f, bias1 = 0.1f, bias2 = 0.05f;
    TRY(engine_feed(e, GRAPH_UPDATE, "lr", &lr, sizeof lr));
    TRY(engine_feed(e, GRAPH_UPDATE, "bias1", &bias1, sizeof bias1));
    return engine_feed(e, GRAPH_UPDATE, "bias2", &bias2, sizeof bias2);
}

static enum status feed_ids(struct noise *n, enum graph_kind kind, const char *input,
                            uint32_t sequence, uint64_t first)
{
    int64_t vocab = n->engine->model.vocab;
    for (int64_t i = 0; i < count(n); i++)
        n->tokens[i] = (int32_t)rng_below(1, RNG_TEST, sequence, first + (uint64_t)i, vocab);
    return engine_feed(n->engine, kind, input, n->tokens, count(n) * ID);
}

enum status noise_feed(struct noise *n, enum graph_kind kind, int iteration)
{
    struct engine *e = n->engine;
    int64_t T = positions(n);
    int32_t step = iteration;
    if (kind == GRAPH_UPDATE) return feed_update(e);
    TRY(feed_ids(n, kind, "tokens", (uint32_t)iteration, 0));
    TRY(feed_ids(n, kind, "targets", (uint32_t)iteration, (uint64_t)count(n)));
    for (int64_t i = 0; i < T; i++) n->tokens[i] = (int32_t)i;
    TRY(engine_feed(e, kind, "positions", n->tokens, T * ID));
    return engine_feed(e, kind, "step", &step, sizeof step);
}

enum status noise_step(struct noise *n, int iteration, const struct plan_hooks *hooks,
                       double *ret_ms)
{
    struct engine *e = n->engine;
    int64_t micro_steps = e->config->train.gradient_accumulation_steps;
    double ms = 0;
    for (int64_t i = 0; i <= micro_steps; i++) {
        enum graph_kind kind = i == micro_steps ? GRAPH_UPDATE
                               : i == 0         ? GRAPH_MICRO
                                                : GRAPH_MICRO_MORE;
        TRY(noise_feed(n, kind, (int)(iteration * micro_steps + i)));
        int64_t start = clock_ns();
        TRY(engine_run(e, kind, hooks));
        TRY(engine_sync(e));
        ms += clock_ms(start, clock_ns());
        if (kind != GRAPH_UPDATE) TRY(engine_read(e, kind, "loss", &n->loss, sizeof n->loss));
    }
    if (ret_ms) *ret_ms = ms;
    return ST_OK;
}
