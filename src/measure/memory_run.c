#include "measure/memory_run.h"

#include "backend/backend.h"
#include "measure/noise.h"
#include "train/device.h"
#include "train/tune.h"

/* Part of a step: its graphs one after the other, without the update. */
static enum status run_part(struct noise *n, int iteration)
{
    static const enum graph_kind parts[] = {GRAPH_EVAL, GRAPH_MICRO, GRAPH_MICRO_MORE};
    struct engine *e = n->engine;
    for (int i = 0; i < COUNT_OF(parts); i++) {
        if (!e->program.built[parts[i]]) continue;
        TRY(noise_feed(n, parts[i], iteration));
        TRY(engine_run(e, parts[i], NULL));
    }
    return e->backend->sync(e->context);
}

/* A host that has too little would end the process, not this call. */
static enum status check_room(const struct config *c, int64_t vocab, enum memory_extent extent)
{
    struct arena a = {0};
    struct program p;
    struct device device;
    TRY(device_of(c, &device));
    enum status st = program_for(&p, c, vocab, memory_kinds(c, extent), device.backend->name, &a);
    if (st == ST_OK) st = noise_check_room(program_bytes(&p), device.backend->room(device.number));
    arena_release(&a);
    return st;
}

enum status memory_run(const struct config *c, int64_t vocab, enum memory_extent extent,
                       struct memory_run *ret)
{
    struct arena a = {0};
    struct engine e;
    struct noise noise = {0};
    TRY(check_room(c, vocab, extent));
    enum status st = engine_open(&e, c, vocab, memory_kinds(c, extent), device_backend(c), &a);
    if (st != ST_OK) {
        arena_release(&a);
        return st;
    }
    *ret = (struct memory_run){program_bytes(&e.program), -1, e.backend->host_memory};
    TRY_OUT(st, noise_init(&noise, &e, &a));
    for (int i = 0; i < 2; i++) {
        TRY_OUT(st,
                extent == EXTENT_STEP ? noise_step(&noise, i, NULL, NULL) : run_part(&noise, i));
        int64_t now = engine_measured_bytes(&e);
        if (now > ret->measured) ret->measured = now;
    }
out:
    noise_close(&noise);
    engine_close(&e);
    arena_release(&a);
    return st;
}
