#include "measure/bench_step.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/rng.h"
#include "train/engine.h"

static bool is_product(enum op op)
{
    return op == OP_MATMUL || op == OP_LINEAR;
}

static enum status run_products(struct plan *p, double *ret_flops)
{
    *ret_flops = 0;
    for (int id = 0; id < p->steps; id++) {
        struct step *s = &p->step[id];
        if (!s->kernel || !is_product(p->graph->node[id].op)) continue;
        TRY(s->kernel->run(&s->call));
        *ret_flops += s->cost.flops;
    }
    return ST_OK;
}

static enum status feed(struct engine *e, int iteration, int32_t *tokens, int64_t n)
{
    int64_t T = e->model.config.block_size;
    int32_t step = iteration;
    for (int64_t i = 0; i < n; i++)
        tokens[i] =
            (int32_t)rng_below(1, RNG_TEST, (uint32_t)iteration, (uint64_t)i, e->model.vocab);
    TRY(engine_feed(e, GRAPH_MICRO, "tokens", tokens, n * 4));
    TRY(engine_feed(e, GRAPH_MICRO, "targets", tokens, n * 4));
    for (int64_t i = 0; i < T; i++) tokens[i] = (int32_t)i;
    TRY(engine_feed(e, GRAPH_MICRO, "positions", tokens, T * 4));
    return engine_feed(e, GRAPH_MICRO, "step", &step, 4);
}

/* The update's inputs lie where the micro-step works, so they are fed between the two. */
static enum status run_step(struct engine *e)
{
    float lr = 1e-4f, bias1 = 0.1f, bias2 = 0.05f;
    TRY(plan_run(&e->plan[GRAPH_MICRO], NULL));
    TRY(engine_feed(e, GRAPH_UPDATE, "lr", &lr, 4));
    TRY(engine_feed(e, GRAPH_UPDATE, "bias1", &bias1, 4));
    TRY(engine_feed(e, GRAPH_UPDATE, "bias2", &bias2, 4));
    TRY(plan_run(&e->plan[GRAPH_UPDATE], NULL));
    return e->backend->sync(e->context);
}

enum status bench_step_run(struct engine *e, int warmup, int steps,
                           void (*each)(void *user, int done), void *user, struct bench_step *ret)
{
    struct arena a = {0};
    int64_t n = e->config->data.batch_size * e->model.config.block_size;
    int32_t *tokens = ARENA_NEW(&a, int32_t, n);
    double *step = ARENA_NEW(&a, double, steps), *products = ARENA_NEW(&a, double, steps);
    double *ratio = ARENA_NEW(&a, double, steps), first = 0;
    enum status st = ST_OK;
    for (int i = -warmup; i < steps; i++) {
        TRY_OUT(st, feed(e, i + warmup, tokens, n));
        int64_t start = clock_ns();
        TRY_OUT(st, run_step(e));
        int64_t middle = clock_ns();
        TRY_OUT(st, run_products(&e->plan[GRAPH_MICRO], &ret->product_flops));
        TRY_OUT(st, e->backend->sync(e->context));
        int64_t end = clock_ns();
        if (i == -warmup) first = clock_ms(start, middle);
        if (each) each(user, i + warmup + 1);
        if (i < 0) continue;
        step[i] = clock_ms(start, middle);
        products[i] = clock_ms(middle, end);
        ratio[i] = step[i] / products[i];
    }
    ret->step = stats_of(step, steps);
    ret->products = stats_of(products, steps);
    ret->ratio = stats_of(ratio, steps);
    ret->first_ms = first;
out:
    arena_release(&a);
    return st;
}
