#include "measure/noise.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/str.h"
#include "train/device.h"
#include "train/tune.h"
#include "train/weights.h"

#include <stdlib.h>
#include <string.h>

static unsigned kinds(const struct config *c)
{
    unsigned training = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;
    return c->train.gradient_accumulation_steps > 1 ? training | 1u << GRAPH_MICRO_MORE : training;
}

enum status noise_bytes(const struct config *c, int64_t vocab, int64_t *ret_bytes)
{
    struct arena a = {0};
    struct program p;
    enum status st = program_for(&p, c, vocab, kinds(c), device_backend(c), &a);
    if (st == ST_OK) *ret_bytes = program_bytes(&p);
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

/* What one name of the inputs of a micro-step is made of. */
struct noise_input {
    const char *name;
    int64_t n, first; /* ids; the number of the first in the sequence of a run */
    int32_t *ids;
};

/* The inputs of a micro-step are whole numbers: positions, the number of the run, and for the rest ids that are drawn. */
static void list_inputs(struct noise *n, struct arena *a)
{
    const struct engine *e = n->engine;
    const struct graph *g =
        &e->program.graph[e->program.built[GRAPH_MICRO] ? GRAPH_MICRO : GRAPH_EVAL];
    int64_t drawn = 0;
    n->input = ARENA_NEW(a, struct noise_input, g->nodes);
    for (int id = 0; id < g->nodes; id++) {
        const struct node *leaf = &g->node[id];
        if (leaf->op != OP_LEAF || leaf->attr.leaf.storage != STORAGE_INPUT) continue;
        const struct type *t = graph_type(g, leaf->out[0]);
        BUG_IF(t->dtype != DT_I32, "input %s is of floats", leaf->scope);
        struct noise_input *in = &n->input[n->inputs++];
        *in = (struct noise_input){leaf->scope, type_elements(t), drawn, NULL};
        in->ids = ARENA_NEW(a, int32_t, in->n);
        for (int64_t i = 0; i < in->n; i++) in->ids[i] = (int32_t)i;
        if (strcmp(in->name, "positions") != 0 && strcmp(in->name, "step") != 0) drawn += in->n;
    }
}

enum { DRAWN_AT_ONCE = 4096 };

/* Standard normals, which stay where they are. */
static enum status draw_state(const struct engine *e)
{
    struct storage_blocks const *s = &e->storage;
    int64_t bytes = s->bytes[STORAGE_DRAWN], n = bytes / (int64_t)sizeof(float);
    if (!bytes) return ST_OK;
    float *x = malloc((size_t)bytes);
    BUG_IF(!x, "no host memory");
#pragma omp parallel for
    for (int64_t i = 0; i < n; i += DRAWN_AT_ONCE)
        rng_normals(1, RNG_TEST, 0, (uint64_t)i, n - i < DRAWN_AT_ONCE ? n - i : DRAWN_AT_ONCE,
                    x + i);
    enum status st = e->backend->upload(e->context, s->base[STORAGE_DRAWN], x, bytes);
    free(x);
    return st;
}

enum status noise_init(struct noise *n, struct engine *e, struct arena *a)
{
    *n = (struct noise){.engine = e};
    list_inputs(n, a);
    stepper_init(&n->stepper, e, a);
    TRY(draw_state(e));
    return weights_draw(e);
}

void noise_close(struct noise *n)
{
    stepper_close(&n->stepper);
}

static void draw(struct noise *n, int32_t iteration)
{
    for (int k = 0; k < n->inputs; k++) {
        struct noise_input *in = &n->input[k];
        if (!strcmp(in->name, "positions")) continue;
        if (!strcmp(in->name, "step")) {
            in->ids[0] = iteration;
            continue;
        }
        for (int64_t i = 0; i < in->n; i++)
            in->ids[i] =
                (int32_t)rng_below(1, RNG_TEST, (uint32_t)iteration, (uint64_t)(in->first + i),
                                   n->engine->program.model.vocab);
    }
}

static int64_t bytes_of(const struct noise_input *in)
{
    return in->n * (int64_t)sizeof *in->ids;
}

enum { UPDATE_INPUTS = 3 };
static const struct {
    const char *name;
    float value;
} of_update[UPDATE_INPUTS] = {{"lr", 1e-4f}, {"bias1", 0.1f}, {"bias2", 0.05f}};

enum status noise_feed(struct noise *n, enum graph_kind kind, int iteration)
{
    if (kind == GRAPH_UPDATE) {
        for (int i = 0; i < UPDATE_INPUTS; i++)
            TRY(engine_feed(n->engine, kind, of_update[i].name, &of_update[i].value,
                            sizeof of_update[i].value));
        return ST_OK;
    }
    draw(n, iteration);
    for (int i = 0; i < n->inputs; i++) {
        const struct noise_input *in = &n->input[i];
        TRY(engine_feed(n->engine, kind, in->name, in->ids, bytes_of(in)));
    }
    return ST_OK;
}

static void prepare(struct noise *n, int iteration)
{
    struct stepper *s = &n->stepper;
    for (int64_t run = 0; run < s->micro_steps; run++) {
        draw(n, (int32_t)(iteration * s->micro_steps + run));
        for (int i = 0; i < n->inputs; i++) {
            const struct noise_input *in = &n->input[i];
            stepper_feed(s, run, in->name, in->ids, bytes_of(in));
        }
    }
    for (int i = 0; i < UPDATE_INPUTS; i++)
        stepper_feed(s, s->micro_steps, of_update[i].name, &of_update[i].value,
                     sizeof of_update[i].value);
}

static void tell(const struct noise *n, enum noise_part part, int iteration, bool begins)
{
    if (n->tell) n->tell(n->user, part, iteration, begins);
}

enum status noise_step(struct noise *n, int iteration, const struct plan_hooks *hooks,
                       double *ret_ms)
{
    struct stepper *s = &n->stepper;
    struct step_result result;
    int64_t lead = n->ahead && (!hooks || hooks->recorded) ? stepper_lead(s) : 0;
    int64_t from = n->done_ns;
    for (int64_t next = iteration + stepper_flying(s); next <= iteration + lead; next++) {
        tell(n, NOISE_DRAWS, (int)next, true);
        prepare(n, (int)next);
        tell(n, NOISE_DRAWS, (int)next, false);
        int64_t start = clock_ns();
        if (!stepper_flying(s)) from = start;
        tell(n, NOISE_STARTS, (int)next, true);
        enum status st = stepper_start(s, hooks);
        tell(n, NOISE_STARTS, (int)next, false);
        TRY(st);
        n->starting_ns += clock_ns() - start;
        n->starts++;
    }
    tell(n, NOISE_WAITS, iteration, true);
    enum status st = stepper_wait(s, &result);
    tell(n, NOISE_WAITS, iteration, false);
    TRY(st);
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
