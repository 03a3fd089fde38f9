#include "bench/bench_step.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "measure/random_step.h"

bool matmuls_include(enum op op)
{
    return op == OP_MATMUL || op == OP_LINEAR || op == OP_LINEAR_GELU ||
           op == OP_MATMUL_GELU_GRAD || op == OP_MATMUL_SUM || op == OP_MATMUL_SCALED;
}

enum status matmuls_run(struct plan *p, struct matmuls *ret)
{
    struct matmuls sum = {0};
    for (int id = 0; id < p->steps; id++) {
        struct step *s = &p->step[id];
        if (!s->kernel || !matmuls_include(p->graph->node[id].op)) continue;
        TRY(s->kernel->run(&s->call));
        sum.flops += s->cost.flops;
        sum.kernels++;
    }
    *ret = sum;
    return p->backend->stream.sync(p->context);
}

/* Runs the matmuls of all micro-steps. */
static enum status matmuls_of_step(const struct random_step *n, struct matmuls *ret)
{
    struct matmuls one;
    *ret = (struct matmuls){0};
    for (int i = 0; i < n->step.parts; i++) {
        enum graph_kind kind = n->step.part[i].kind;
        if (kind == GRAPH_UPDATE) continue;
        TRY(matmuls_run(&n->engine->program.plan[kind], &one));
        ret->flops += one.flops;
        ret->kernels += one.kernels;
    }
    return ST_OK;
}

enum status bench_step_run(struct engine *e, int warmup, int steps,
                           void (*each)(void *user, int done), void *user, struct bench_step *ret)
{
    struct arena a = {0};
    struct random_step random_step = {0};
    struct matmuls sum = {0};
    double *step = ARENA_NEW(&a, double, steps), *matmuls = ARENA_NEW(&a, double, steps);
    double *ratio = ARENA_NEW(&a, double, steps), step_ms;
    int taken = 0;
    enum status st = ST_OK;
    TRY_OUT(st, random_step_init(&random_step, e, &a));
    for (int i = -warmup; i < steps && !(taken && interrupt_noted()); i++) {
        if (interrupt_noted()) {
            st = fail(ST_INTERRUPTED, "interrupted before the first measured step");
            goto out;
        }
        TRY_OUT(st, random_step_run(&random_step, i + warmup, NULL, &step_ms));
        int64_t start = clock_ns();
        TRY_OUT(st, matmuls_of_step(&random_step, &sum));
        double matmuls_ms = clock_ms(start, clock_ns());
        if (i == -warmup) {
            ret->first_ms = step_ms;
            ret->loss = random_step.loss;
        }
        if (each) each(user, i + warmup + 1);
        if (i < 0) continue;
        step[i] = step_ms;
        matmuls[i] = matmuls_ms;
        ratio[i] = step_ms / matmuls_ms;
        taken = i + 1;
    }
    ret->step = stats_of(step, taken);
    ret->matmuls = stats_of(matmuls, taken);
    ret->ratio = stats_of(ratio, taken);
    ret->matmul_flops = sum.flops;
out:
    random_step_close(&random_step);
    arena_release(&a);
    return st;
}
