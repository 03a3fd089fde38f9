#include "suite/profiled.h"

#include "engine/device.h"

enum { WARMUP_HOST = 2, WARMUP_DEVICE = 10 };

/* *ret_recorded: asks for a record of calls, and is then set to whether one was begun. */
static enum status open(struct profiled *p, const struct suite_request *r, int64_t vocab,
                        bool *ret_recorded)
{
    struct device d;
    int64_t bytes;
    TRY(device_of(&p->config, &d));
    TRY(random_step_bytes(&p->config, vocab, EXTENT_STEP, &bytes));
    TRY(random_step_check_memory(&p->config, vocab, EXTENT_STEP, bytes,
                                 suite_free_memory(r, &d, 0)));
    const struct backend_trace *t = *ret_recorded ? d.backend->trace : NULL;
    *ret_recorded = t && t->calls_begin() == ST_OK;
    enum status st = random_step_open(&p->engine, &p->config, vocab, NULL, &p->arena);
    if (st == ST_OK || !*ret_recorded) return st;
    struct trace unused;
    struct failure first;
    fail_keep(&first);
    (void)!t->calls_end(&unused, &p->arena);
    fail_restore(&first);
    return st;
}

enum status profiled_run(struct profiled *p, const struct suite_request *r, const struct config *c,
                         int64_t vocab, int steps, double limit_ms, bool calls)
{
    *p = (struct profiled){.config = *c};
    enum status st = open(p, r, vocab, &calls);
    if (st == ST_UNSUPPORTED || st == ST_MEMORY) {
        p->reason = arena_strdup(&p->arena, fail_message());
        return ST_OK;
    }
    if (st != ST_OK) {
        arena_release(&p->arena);
        return st;
    }
    struct profile_options o = {.steps = steps,
                                .limit_ms = limit_ms,
                                .calls = calls,
                                .machine = r->machine,
                                .warmup =
                                    p->engine.backend->host_memory ? WARMUP_HOST : WARMUP_DEVICE};
    st = profile_run(&p->engine, &o, &p->profile, &p->arena);
    if (st == ST_OK) return ST_OK;
    engine_close(&p->engine);
    if (st == ST_MEMORY || st == ST_INTERRUPTED) {
        p->reason = st == ST_MEMORY
                        ? arena_printf(&p->arena, "did not fit in memory: %s", fail_message())
                        : suite_not_reached;
        return ST_OK;
    }
    arena_release(&p->arena);
    return st;
}

void profiled_close(struct profiled *p)
{
    if (!p->reason) engine_close(&p->engine);
    arena_release(&p->arena);
}
