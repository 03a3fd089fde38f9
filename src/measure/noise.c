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

enum status noise_init(struct noise *n, struct engine *e, struct arena *a)
{
    *n = (struct noise){.engine = e};
    n->tokens = ARENA_NEW(a, int32_t, 2 * count(n));
    n->positions = ARENA_NEW(a, int32_t, positions(n));
    for (int64_t i = 0; i < positions(n); i++) n->positions[i] = (int32_t)i;
    stepper_init(&n->stepper, e, a);
    return weights_draw(e);
}

void noise_close(struct noise *n)
{
    stepper_close(&n->stepper);
}

enum { INPUTS = 4, UPDATE_INPUTS = 3 };
struct input {
    const char *name;
    const void *data;
    int64_t bytes;
};

static void draw(struct noise *n, const int32_t *iteration, struct input input[INPUTS])
{
    int64_t bytes = count(n) * ID;
    for (int64_t i = 0; i < 2 * count(n); i++)
        n->tokens[i] = (int32_t)rng_below(1, RNG_TEST, (uint32_t)*iteration, (uint64_t)i,
                                          n->engine->model.vocab);
    input[0] = (struct input){"tokens", n->tokens, bytes};
    input[1] = (struct input){"targets", n->tokens + count(n), bytes};
    input[2] = (struct input){"positions", n->positions, positions(n) * ID};
    input[3] = (struct input){"step", iteration, ID};
}

static const float lr = 1e-4f, bias1 = 0.1f, bias2 = 0.05f;
static const struct input of_update[UPDATE_INPUTS] = {
    {"lr", &lr, sizeof lr}, {"bias1", &bias1, sizeof bias1}, {"bias2", &bias2, sizeof bias2}};

enum status noise_feed(struct noise *n, enum graph_kind kind, int iteration)
{
    struct input drawn[INPUTS];
    const struct input *input = of_update;
    int inputs = UPDATE_INPUTS;
    int32_t step = iteration;
    if (kind != GRAPH_UPDATE) {
        draw(n, &step, drawn);
        input = drawn;
        inputs = INPUTS;
    }
    for (int i = 0; i < inputs; i++)
        TRY(engine_feed(n->engine, kind, input[i].name, input[i].data, input[i].bytes));
    return ST_OK;
}

static void prepare(struct noise *n, int iteration)
{
    struct stepper *s = &n->stepper;
    struct input drawn[INPUTS];
    for (int64_t run = 0; run < s->micro_steps; run++) {
        int32_t step = (int32_t)(iteration * s->micro_steps + run);
        draw(n, &step, drawn);
        for (int i = 0; i < INPUTS; i++)
            stepper_feed(s, run, drawn[i].name, drawn[i].data, drawn[i].bytes);
    }
    for (int i = 0; i < UPDATE_INPUTS; i++)
        stepper_feed(s, s->micro_steps, of_update[i].name, of_update[i].data, of_update[i].bytes);
}

enum status noise_step(struct noise *n, int iteration, const struct plan_hooks *hooks,
                       double *ret_ms)
{
    struct stepper *s = &n->stepper;
    struct step_result result;
    int64_t lead = n->ahead && (!hooks || hooks->recorded) ? stepper_lead(s) : 0;
    int64_t from = n->done_ns;
    for (int64_t next = iteration + stepper_flying(s); next <= iteration + lead; next++) {
        prepare(n, (int)next);
        int64_t start = clock_ns();
        if (!stepper_flying(s)) from = start;
        TRY(stepper_start(s, hooks));
        n->starting_ns += clock_ns() - start;
    }
    TRY(stepper_wait(s, &result));
    n->done_ns = clock_ns();
    n->loss = result.loss;
    if (ret_ms) *ret_ms = clock_ms(from, n->done_ns);
    return ST_OK;
}

enum status noise_land(struct noise *n)
{
    struct step_result result;
    while (stepper_flying(&n->stepper)) TRY(stepper_wait(&n->stepper, &result));
    return ST_OK;
}
