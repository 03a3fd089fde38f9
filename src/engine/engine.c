#include "engine/engine.h"

#include "backend/communicator.h"
#include "base/host.h"
#include "engine/device.h"
#include "engine/fit.h"
#include "engine/shards.h"
#include "engine/tune.h"

#include <string.h>

/* Bytes in use, plus an arbitrary constant, in the memory that holds the storage; -1: unknown. */
static int64_t used_bytes(const struct engine *e)
{
    if (e->backend->host_memory) return host_anonymous_bytes();
    enum { FAR = 50 }; /* no device has 2^50 bytes */
    int64_t space = e->backend->devices.free_memory(device_number(e->program.config));
    return space < 0 ? -1 : ((int64_t)1 << FAR) - space;
}

/* Ranks in one process share its memory; rank 0 checks their total need before any allocates. */
static enum status check_fit(struct engine *e, unsigned kinds)
{
    struct communicator *c = e->communicator;
    bool shared = communicator_in_process(c);
    char fits = 1;
    if (!shared || communicator_rank(c) == 0)
        TRY(fit_check(&e->program, kinds, shared ? communicator_ranks(c) : 1));
    return shared ? communicator_tell(c, &fits, sizeof fits) : ST_OK;
}

/* A program that does not fit in memory is reported before any kernel is measured or compiled. */
static enum status compile(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                           const char *backend, struct tuning *t, struct arena *a)
{
    struct target target;
    TRY(device_target(c, backend, true, &target));
    bool tunes = tune_read(c, &target, t, a);
    TRY(program_compile(&e->program, c, vocab, &target, tunes ? t : NULL, kinds, a));
    return check_fit(e, kinds);
}

/* Checks that the ranks of the plans exist: a rank alone would wait for the others forever. */
static enum status check_ranks(const struct config *c, unsigned kinds,
                               const struct communicator *communicator)
{
    int ranks = communicator_ranks(communicator);
    bool sums = kinds & (1u << GRAPH_MICRO | 1u << GRAPH_MICRO_LAST);
    BUG_IF(communicator &&
               (c->ranks.count != ranks || c->ranks.rank != communicator_rank(communicator)),
           "rank %d of %d runs the plan of another", communicator_rank(communicator), ranks);
    bool share = communicator && communicator_in_process(communicator);
    if (share && ranks > RANKS_ON_DEVICE && strcmp(device_backend(c), "cpu") != 0)
        return fail(ST_UNSUPPORTED, "ranks = %d: at most %d ranks share a GPU; use --ranks=%d",
                    ranks, RANKS_ON_DEVICE, RANKS_ON_DEVICE);
    if (share && shards_reduce_bf16(c))
        return fail(ST_UNSUPPORTED, "reduce_dtype=bfloat16: NCCL sums in it, for ranks that are "
                                    "processes with a GPU each; threads use reduce_dtype=float32");
    if (communicator || c->ranks.count <= 1 || !sums) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "ranks = %lld: this command runs one rank; `strobe train`, `profile`, `ladder` and "
                "`bench --phase=step` run several; use --ranks=1 here",
                (long long)c->ranks.count);
}

enum status engine_open(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a)
{
    return engine_open_rank(e, c, vocab, kinds, backend, NULL, a);
}

enum status engine_open_rank(struct engine *e, const struct config *c, int64_t vocab,
                             unsigned kinds, const char *backend, struct communicator *communicator,
                             struct arena *a)
{
    struct tuning *t = ARENA_NEW(a, struct tuning, 1);
    enum status st = ST_OK;
    *e = (struct engine){.communicator = communicator};
    TRY(check_ranks(c, kinds, communicator));
    TRY(compile(e, c, vocab, kinds, backend, t, a));
    const struct backend *b = e->program.target->backend;
    TRY(b->open(device_number(c), &e->context));
    e->backend = b;
    if (!communicator) { /* ranks would disturb each other's timings */
        TRY_OUT(st, tune_program(&e->program, kinds, e->context, t, a));
        TRY_OUT(st, fit_check(&e->program, kinds, 1));
    }
    e->used_before = used_bytes(e);
    e->storage =
        (struct storage_blocks){.backend = b, .context = e->context, .communicator = communicator};
    for (int i = 0; i < STORAGE_COUNT; i++) e->storage.bytes[i] = e->program.bytes[i];
    TRY_OUT(st, storage_alloc(&e->storage));
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (e->program.built[kind]) TRY_OUT(st, plan_bind(&e->program.plan[kind], &e->storage));
out:
    if (st != ST_OK) engine_close(e);
    return st;
}

void engine_close(struct engine *e)
{
    if (!e->backend) return;
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        if (e->program.built[kind]) plan_release(&e->program.plan[kind]);
        e->program.built[kind] = false;
    }
    storage_free(&e->storage);
    e->backend->close(e->context);
    e->backend = NULL;
}

enum status engine_refresh(struct engine *e)
{
    struct program *p = &e->program;
    return p->built[GRAPH_REFRESH] ? plan_run(&p->plan[GRAPH_REFRESH], NULL) : ST_OK;
}

int64_t engine_measured_bytes(const struct engine *e)
{
    int64_t now = used_bytes(e);
    return now < 0 || e->used_before < 0 ? -1 : now - e->used_before;
}
