#include "measure/random_step.h"

#include "backend/backend.h"
#include "backend/communicator.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/str.h"
#include "engine/crew.h"
#include "engine/device.h"
#include "engine/fit.h"
#include "engine/optimizer.h"
#include "engine/tune.h"
#include "engine/weights.h"

#include <stdlib.h>
#include <string.h>

enum status random_step_bytes(const struct config *c, int64_t vocab, enum memory_extent extent,
                              int64_t *ret_bytes)
{
    struct arena a = {0};
    struct program p;
    enum status st = program_for(&p, c, vocab, memory_kinds(c, extent), device_backend(c), &a);
    if (st == ST_OK) *ret_bytes = program_bytes(&p) * communicator_local_ranks(c->ranks.count);
    arena_release(&a);
    return st;
}

enum status random_step_check_memory(const struct config *c, int64_t vocab,
                                     enum memory_extent extent, int64_t bytes, int64_t memory_limit)
{
    char needed[32], there[32];
    struct arena a = {0};
    struct program p;
    if (memory_limit < 0 || bytes <= memory_limit) return ST_OK;
    unsigned kinds = memory_kinds(c, extent);
    enum status st = program_for(&p, c, vocab, kinds, device_backend(c), &a);
    if (st == ST_OK)
        st = fail(ST_UNSUPPORTED, "it needs %s of memory, and %s are free; %s",
                  str_bytes(needed, (double)bytes), str_bytes(there, (double)memory_limit),
                  fit_words(&p, kinds, memory_limit, &a));
    arena_release(&a);
    return st;
}

enum status random_step_check(const struct config *c, int64_t vocab, enum memory_extent extent)
{
    struct arena a = {0};
    struct program p;
    unsigned kinds = memory_kinds(c, extent);
    enum status st = program_for(&p, c, vocab, kinds, device_backend(c), &a);
    if (st == ST_OK) st = fit_check(&p, kinds, 1);
    arena_release(&a);
    return st;
}

enum status random_step_open(struct engine *e, const struct config *c, int64_t vocab,
                             struct communicator *communicator, struct arena *a)
{
    unsigned kinds = memory_kinds(c, EXTENT_STEP);
    return engine_open_rank(e, c, vocab, kinds, device_backend(c), communicator, a);
}

struct random_step_input {
    const char *name;
    int64_t n, first; /* number of ids; index of the first in the random sequence of a run */
    int32_t *ids;
};

/* Lists the inputs of a micro-step, all integers: positions, step number, random ids. */
static void list_inputs(struct random_step *n, struct arena *a)
{
    const struct engine *e = n->engine;
    const struct graph *g =
        &e->program.graph[e->program.built[GRAPH_MICRO] ? GRAPH_MICRO : GRAPH_EVAL];
    int64_t random_ids = 0;
    n->input = ARENA_NEW(a, struct random_step_input, g->nodes);
    for (int id = 0; id < g->nodes; id++) {
        const struct node *leaf = &g->node[id];
        if (leaf->op != OP_LEAF || leaf->attr.leaf.storage != STORAGE_INPUT) continue;
        const struct type *t = graph_type(g, leaf->out[0]);
        BUG_IF(t->dtype != DT_I32, "input %s is not of integers", leaf->scope);
        struct random_step_input *in = &n->input[n->inputs++];
        *in = (struct random_step_input){leaf->scope, type_elements(t), random_ids, NULL};
        in->ids = ARENA_NEW(a, int32_t, in->n);
        for (int64_t i = 0; i < in->n; i++) in->ids[i] = (int32_t)i;
        if (strcmp(in->name, "positions") != 0 && strcmp(in->name, "step") != 0)
            random_ids += in->n;
    }
}

enum { NORMALS_CHUNK = 4096 };

/* Fills STORAGE_RANDOM with standard normals, once. */
static enum status fill_state(const struct engine *e)
{
    struct storage_blocks const *s = &e->storage;
    int64_t bytes = s->bytes[STORAGE_RANDOM], n = bytes / (int64_t)sizeof(float);
    if (!bytes) return ST_OK;
    float *x = heap_alloc(bytes);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i += NORMALS_CHUNK)
        rng_normals(1, RNG_TEST, 0, (uint64_t)i, n - i < NORMALS_CHUNK ? n - i : NORMALS_CHUNK,
                    x + i);
    enum status st = e->backend->memory.upload(e->context, s->base[STORAGE_RANDOM], x, bytes);
    free(x);
    return st;
}

enum status random_step_init(struct random_step *n, struct engine *e, struct arena *a)
{
    *n = (struct random_step){.engine = e};
    list_inputs(n, a);
    if (e->program.built[GRAPH_MICRO] && e->program.built[GRAPH_UPDATE])
        sequence_init_step(&n->step, e, a);
    TRY(fill_state(e));
    return weights_init(e);
}

void random_step_close(struct random_step *n)
{
    sequence_close(&n->step);
}

static void generate_ids(struct random_step *n, int32_t iteration)
{
    for (int k = 0; k < n->inputs; k++) {
        struct random_step_input *in = &n->input[k];
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

static enum status feed_update(struct random_step *n, struct sequence *s, int part)
{
    const struct optimizer *o = optimizer_of(n->engine->program.config);
    for (int i = 0; i < o->inputs; i++) {
        float x = (float)o->input[i].timed;
        TRY(sequence_feed(s, part, o->input[i].name, &x, sizeof x));
    }
    return ST_OK;
}

enum status random_step_feed(struct random_step *n, struct sequence *s, int part, int number)
{
    if (s->part[part].kind == GRAPH_UPDATE) return feed_update(n, s, part);
    generate_ids(n, number);
    for (int i = 0; i < n->inputs; i++) {
        const struct random_step_input *in = &n->input[i];
        TRY(sequence_feed(s, part, in->name, in->ids, in->n * (int64_t)sizeof *in->ids));
    }
    return ST_OK;
}

/* Feeds the inputs of a step. The ranks get micro-batches in turn, as in training, so that all
 * ranks together train on the tokens that a single rank would train on. */
static enum status prepare(struct random_step *n, int iteration)
{
    const struct communicator *c = n->engine->communicator;
    int parts = n->step.parts, ranks = communicator_ranks(c), rank = communicator_rank(c);
    for (int part = 0; part < parts; part++) {
        int number = (iteration * (parts - 1) + part) * ranks + rank;
        TRY(random_step_feed(n, &n->step, part, number));
    }
    return ST_OK;
}

/* *ret_mean is the mean of `mine` over the ranks. This is also a barrier: it waits for all
 * ranks. */
static enum status meet(struct communicator *c, double mine, double *ret_mean)
{
    double sum = 0, all[RANKS_MOST];
    *ret_mean = mine;
    if (!c) return ST_OK;
    TRY(communicator_gather(c, &mine, sizeof mine, all));
    for (int r = 0; r < communicator_ranks(c); r++) sum += all[r];
    *ret_mean = sum / communicator_ranks(c);
    return ST_OK;
}

static void report(const struct random_step *n, enum random_step_part part, int iteration,
                   bool begins)
{
    if (n->tell) n->tell(n->user, part, iteration, begins);
}

static enum status start_step(struct random_step *n, int iteration, const struct plan_hooks *hooks,
                              int64_t *ret_start_ns)
{
    double begun;
    int order = sequence_replays(&n->step, hooks) ? STEP_ORDER_REPLAY : STEP_ORDER_START;
    report(n, RANDOM_STEP_FEEDS, iteration, true);
    TRY(crew_order(n->engine->communicator, order, iteration, n->mark));
    TRY(prepare(n, iteration));
    TRY(meet(n->engine->communicator, 0, &begun));
    report(n, RANDOM_STEP_FEEDS, iteration, false);
    *ret_start_ns = clock_ns();
    report(n, RANDOM_STEP_STARTS, iteration, true);
    enum status st = sequence_start(&n->step, hooks);
    report(n, RANDOM_STEP_STARTS, iteration, false);
    TRY(st);
    n->starting_ns += clock_ns() - *ret_start_ns;
    n->starts++;
    return ST_OK;
}

/* On a GPU all ranks wait at the same time. On a CPU the step is over when it has been started, and
 * a rank takes orders only then, so the time of rank 0 must not include its order. */
static enum status wait_for_step(struct random_step *n, int iteration)
{
    struct step_result result;
    struct communicator *c = n->engine->communicator;
    bool early = !n->engine->backend->host_memory;
    if (early) TRY(crew_order(c, STEP_ORDER_WAIT, iteration, n->mark));
    report(n, RANDOM_STEP_WAITS, iteration, true);
    enum status st = sequence_wait_step(&n->step, &result);
    report(n, RANDOM_STEP_WAITS, iteration, false);
    TRY(st);
    n->done_ns = clock_ns();
    if (!early) TRY(crew_order(c, STEP_ORDER_WAIT, iteration, n->mark));
    return meet(c, result.loss, &n->loss);
}

static enum status run_step(struct random_step *n, int iteration, const struct plan_hooks *hooks,
                            double *ret_ms)
{
    struct sequence *s = &n->step;
    int64_t lookahead = n->lookahead && (!hooks || hooks->recorded) ? sequence_lookahead(s) : 0;
    int64_t from = n->done_ns, start;
    for (int64_t next = iteration + sequence_in_flight(s); next <= iteration + lookahead; next++) {
        bool idle = !sequence_in_flight(s);
        TRY(start_step(n, (int)next, hooks, &start));
        if (idle) from = start;
    }
    TRY(wait_for_step(n, iteration));
    if (ret_ms) *ret_ms = clock_ms(from, n->done_ns);
    return ST_OK;
}

/* If this rank cannot run its step, communicator_fail makes the other ranks stop waiting for it. */
enum status random_step_run(struct random_step *n, int iteration, const struct plan_hooks *hooks,
                            double *ret_ms)
{
    enum status st = run_step(n, iteration, hooks, ret_ms);
    if (st != ST_OK) communicator_fail(n->engine->communicator, st);
    return st;
}

static void look_on(void *, const struct plan *, int) {}

enum status random_step_obey(struct random_step *n, const struct crew_order *o,
                             const struct plan_hooks *hooks)
{
    static const struct plan_hooks watched = {.before = look_on};
    int64_t start_ns;
    BUG_IF(o->what == STEP_ORDER_REPLAY && !sequence_replays(&n->step, hooks),
           "rank 0 replays a step that this rank cannot replay");
    if (!hooks && o->what == STEP_ORDER_START) hooks = &watched; /* so nothing is replayed */
    return o->what == STEP_ORDER_WAIT ? wait_for_step(n, (int)o->iter)
                                      : start_step(n, (int)o->iter, hooks, &start_ns);
}

enum status random_step_finish(struct random_step *n)
{
    enum status st = ST_OK;
    while (st == ST_OK && sequence_in_flight(&n->step)) st = wait_for_step(n, 0);
    if (st != ST_OK) communicator_fail(n->engine->communicator, st);
    return st;
}
