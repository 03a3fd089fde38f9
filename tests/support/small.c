#include "../support/small.h"

#include "backend/backend.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void small_ok(enum status st)
{
    if (st != ST_OK) fail_msg("%s", fail_message());
}

void small_init(struct small *s)
{
    *s = (struct small){.backend = backend_find("cpu")};
    graph_init(&s->graph, &s->arena);
}

void small_plan(struct small *s, const struct plan_options *options)
{
    small_ok(graph_verify(&s->graph));
    small_ok(s->backend->open(0, &s->context));
    small_ok(plan_build(&s->plan, &s->graph, s->backend, s->context, options, &s->arena));
    s->storage = (struct storage_blocks){.backend = s->backend, .context = s->context};
    storage_reserve(&s->storage, &s->plan);
    small_ok(storage_alloc(&s->storage));
    small_ok(plan_bind(&s->plan, &s->storage));
}

void small_run(struct small *s)
{
    small_ok(plan_run(&s->plan, NULL));
}

void small_close(struct small *s)
{
    if (s->context) {
        plan_release(&s->plan);
        storage_free(&s->storage);
        s->backend->close(s->context);
    }
    arena_release(&s->arena);
}

void *small_input(struct small *s, const char *name)
{
    void *at = plan_input(&s->plan, name);
    if (!at) fail_msg("no input %s", name);
    return at;
}

float *small_output(struct small *s, const char *name)
{
    void *at = plan_output(&s->plan, name);
    if (!at) fail_msg("no output %s", name);
    return at;
}

float *small_leaf(struct small *s, enum storage storage, const char *name)
{
    value v = graph_find_leaf(&s->graph, storage, name);
    if (!v.i) fail_msg("no leaf %s", name);
    return plan_address(&s->plan, v);
}

void small_fill(float *x, int64_t n, uint32_t sequence)
{
    for (int64_t i = 0; i < n; i++) x[i] = 2 * rng_uniform(1, RNG_TEST, sequence, (uint64_t)i) - 1;
}

double small_distance(const float *a, const float *b, int64_t n)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(apart / size) : sqrt(apart);
}

int small_count(const struct graph *g, enum op op)
{
    int n = 0;
    for (int id = 0; id < g->nodes; id++) n += g->node[id].op == op;
    return n;
}
