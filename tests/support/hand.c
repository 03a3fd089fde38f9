#include "../support/hand.h"

#include "backend/backend.h"
#include "base/rng.h"
#include "base/threads.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

void hand_ok(enum status st)
{
    if (st != ST_OK) fail_msg("%s", fail_message());
}

void hand_init(struct hand *s)
{
    *s = (struct hand){.backend = backend_find("cpu")};
    graph_init(&s->graph, &s->arena);
}

void hand_plan(struct hand *s, const struct plan_options *options)
{
    threads_set(1); /* more threads would be slower on such small tensors */
    hand_ok(graph_verify(&s->graph));
    hand_ok(s->backend->open(0, &s->context));
    hand_ok(backend_target(s->backend, 0, &s->target));
    hand_ok(plan_build(&s->plan, &s->graph, &s->target, options, &s->arena));
    s->storage = (struct storage_blocks){.backend = s->backend, .context = s->context};
    storage_reserve(&s->storage, &s->plan);
    hand_ok(storage_alloc(&s->storage));
    hand_ok(plan_bind(&s->plan, &s->storage));
}

void hand_run(struct hand *s)
{
    hand_ok(plan_run(&s->plan, NULL));
}

void hand_close(struct hand *s)
{
    if (s->context) {
        plan_release(&s->plan);
        storage_free(&s->storage);
        s->backend->close(s->context);
    }
    arena_release(&s->arena);
}

void *hand_input(struct hand *s, const char *name)
{
    void *at = plan_input(&s->plan, name);
    if (!at) fail_msg("no input %s", name);
    return at;
}

float *hand_output(struct hand *s, const char *name)
{
    void *at = plan_output(&s->plan, name);
    if (!at) fail_msg("no output %s", name);
    return at;
}

float *hand_leaf(struct hand *s, enum storage storage, const char *name)
{
    value v = graph_find_leaf(&s->graph, storage, name);
    if (!v.i) fail_msg("no leaf %s", name);
    return plan_address(&s->plan, v);
}

void hand_fill(float *x, int64_t n, uint32_t sequence)
{
    for (int64_t i = 0; i < n; i++) x[i] = 2 * rng_uniform(1, RNG_TEST, sequence, (uint64_t)i) - 1;
}

double hand_distance(const float *a, const float *b, int64_t n)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - (double)b[i];
        apart += d * d;
        size += (double)b[i] * (double)b[i];
    }
    return size > 0 ? sqrt(apart / size) : sqrt(apart);
}

int hand_count(const struct graph *g, enum op op)
{
    int n = 0;
    for (int id = 0; id < g->nodes; id++) n += g->node[id].op == op;
    return n;
}
