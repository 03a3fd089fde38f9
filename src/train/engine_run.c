/* The host's side of runs: plans started or played back, data in, results out. */
#include "backend/backend.h"
#include "train/engine.h"

enum status engine_refresh(struct engine *e)
{
    return e->program.built[GRAPH_REFRESH] ? plan_run(&e->program.plan[GRAPH_REFRESH], NULL)
                                           : ST_OK;
}

static enum status record(struct engine *e, enum graph_kind kind, const struct plan_hooks *hooks)
{
    TRY(e->backend->capture_begin(e->context));
    enum status st = plan_run(&e->program.plan[kind], hooks);
    struct failure first;
    fail_keep(&first);
    enum status ended = e->backend->capture_end(e->context, &e->recording[kind]);
    if (st == ST_OK) return ended;
    fail_again(&first);
    return st;
}

bool engine_replays(const struct engine *e, const struct plan_hooks *hooks)
{
    bool watched = hooks && !hooks->recorded && (hooks->before || hooks->after);
    return e->program.config->plan.replay && !watched && !e->program.config->plan.poison;
}

enum status engine_run(struct engine *e, enum graph_kind kind, const struct plan_hooks *hooks)
{
    if (!engine_replays(e, hooks) || e->runs[kind]++ == 0)
        return plan_run(&e->program.plan[kind], hooks);
    if (!e->recording[kind]) TRY(record(e, kind, hooks));
    return e->backend->replay(e->context, e->recording[kind]);
}

enum status engine_feed(struct engine *e, enum graph_kind kind, const char *input, const void *data,
                        int64_t bytes)
{
    value v = graph_find_leaf(&e->program.graph[kind], STORAGE_INPUT, input);
    if (!v.i) return ST_OK;
    BUG_IF(type_bytes(graph_type(&e->program.graph[kind], v)) != bytes, "input %s of %lld bytes",
           input, (long long)bytes);
    return e->backend->upload(e->context, plan_address(&e->program.plan[kind], v), data, bytes);
}

enum status engine_read(struct engine *e, enum graph_kind kind, const char *output, void *ret_data,
                        int64_t bytes)
{
    value v = graph_find_output(&e->program.graph[kind], output);
    BUG_IF(!v.i, "no output %s", output);
    BUG_IF(type_bytes(graph_type(&e->program.graph[kind], v)) < bytes, "output %s is smaller",
           output);
    return e->backend->download(e->context, ret_data, plan_address(&e->program.plan[kind], v),
                                bytes);
}
