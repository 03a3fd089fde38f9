#include "bench/memory_run.h"

#include "backend/backend.h"
#include "engine/device.h"
#include "measure/random_step.h"

/* A whole step, or a part of one: its plans one after the other, without the update. */
struct running {
    struct random_step random_step;
    struct sequence plan[3];
    int plans; /* 0: a whole step */
};

static enum status init(struct running *r, struct engine *e, enum memory_extent extent,
                        struct arena *a)
{
    static const enum graph_kind kinds[] = {GRAPH_EVAL, GRAPH_MICRO, GRAPH_MICRO_MORE};
    for (int i = 0; extent != EXTENT_STEP && i < COUNT_OF(kinds); i++)
        if (e->built[kinds[i]]) sequence_init_plan(&r->plan[r->plans++], e, kinds[i], NULL, a);
    return random_step_init(&r->random_step, e, a);
}

static enum status run(struct running *r, int iteration)
{
    const struct engine *e = r->random_step.engine;
    if (!r->plans) return random_step_run(&r->random_step, iteration, NULL, NULL);
    for (int i = 0; i < r->plans; i++) {
        TRY(random_step_feed(&r->random_step, &r->plan[i], 0, iteration));
        TRY(sequence_start(&r->plan[i], NULL));
    }
    return e->backend->sync(e->context);
}

static void close_running(struct running *r)
{
    for (int i = 0; i < r->plans; i++) sequence_close(&r->plan[i]);
    random_step_close(&r->random_step);
}

/* A host that has too little would end the process, not this call. */
static enum status check_room(const struct config *c, int64_t vocab, enum memory_extent extent)
{
    struct arena a = {0};
    struct engine e;
    struct device device;
    TRY(device_of(c, &device));
    enum status st = engine_plan(&e, c, vocab, memory_kinds(c, extent), device.backend->name, &a);
    if (st == ST_OK) {
        st = random_step_check_room(engine_bytes(&e), device.backend->room(device.number));
        engine_close(&e);
    }
    arena_release(&a);
    return st;
}

enum status memory_run(const struct config *c, int64_t vocab, enum memory_extent extent,
                       struct memory_run *ret)
{
    struct arena a = {0};
    struct engine e;
    struct running running = {0};
    TRY(check_room(c, vocab, extent));
    enum status st = engine_open(&e, c, vocab, memory_kinds(c, extent), device_backend(c), &a);
    if (st != ST_OK) {
        arena_release(&a);
        return st;
    }
    *ret = (struct memory_run){engine_bytes(&e), -1, e.backend->host_memory};
    TRY_OUT(st, init(&running, &e, extent, &a));
    for (int i = 0; i < 2; i++) {
        TRY_OUT(st, run(&running, i));
        int64_t now = engine_measured_bytes(&e);
        if (now > ret->measured) ret->measured = now;
    }
out:
    close_running(&running);
    engine_close(&e);
    arena_release(&a);
    return st;
}
