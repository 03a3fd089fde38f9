#include "bench/memory_run.h"

#include "backend/backend.h"
#include "engine/device.h"
#include "measure/random_step.h"

static enum status run_plans(struct random_step *r, struct sequence plan[GRAPH_COUNT],
                             int iteration)
{
    const struct engine *e = r->engine;
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        if (!e->program.built[kind] || kind == GRAPH_REFRESH) continue;
        TRY(random_step_feed(r, &plan[kind], 0, iteration));
        TRY(sequence_start(&plan[kind], NULL));
    }
    return e->backend->stream.sync(e->context);
}

enum status memory_run(const struct config *c, int64_t vocab, enum memory_extent extent,
                       struct memory_run *ret)
{
    struct arena a = {0};
    struct engine e;
    struct random_step steps = {0};
    struct sequence plan[GRAPH_COUNT] = {0};
    enum status st = engine_open(&e, c, vocab, memory_kinds(c, extent), device_backend(c), &a);
    if (st != ST_OK) {
        arena_release(&a);
        return st;
    }
    *ret = (struct memory_run){program_bytes(&e.program), -1, e.backend->host_memory};
    TRY_OUT(st, random_step_init(&steps, &e, &a));
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        sequence_init_plan(&plan[kind], &e, (enum graph_kind)kind, NULL, &a);
    for (int i = 0; i < 2; i++) {
        TRY_OUT(st, extent == EXTENT_STEP ? random_step_run(&steps, i, NULL, NULL)
                                          : run_plans(&steps, plan, i));
        int64_t now = engine_measured_bytes(&e);
        if (now > ret->measured) ret->measured = now;
    }
out:
    random_step_close(&steps);
    for (int kind = 0; kind < GRAPH_COUNT; kind++) sequence_close(&plan[kind]);
    engine_close(&e);
    arena_release(&a);
    return st;
}
