#include "engine/weights.h"

#include "backend/backend.h"
#include "base/heap.h"
#include "engine/engine.h"
#include "engine/shards.h"

#include <stdlib.h>

enum status weights_init(struct engine *e)
{
    if (!e->program.model.parameters) return ST_OK;
    bool in_place = e->backend->host_memory;
    float *range = e->storage.base[STORAGE_WEIGHTS];
    float *weights =
        in_place ? range : heap_alloc(e->program.model.elements * (int64_t)sizeof *range);
    enum status st = ST_OK;
    static const enum storage zeroed[] = {STORAGE_MOMENT1, STORAGE_MOMENT2, STORAGE_AMAX};
    for (int i = 0; i < COUNT_OF(zeroed); i++) {
        void *block = e->storage.base[zeroed[i]];
        if (block)
            TRY_OUT(st, e->backend->memory.fill(e->context, block, 0, e->storage.bytes[zeroed[i]]));
    }
    model_init_weights(&e->program.model, weights);
    if (!in_place)
        TRY_OUT(st, e->backend->memory.upload(e->context, range, weights,
                                              e->storage.bytes[STORAGE_WEIGHTS]));
    TRY_OUT(st, engine_refresh(e));
out:
    if (!in_place) free(weights);
    return st;
}

/* The host address of a range: the engine's memory, or a new copy of it. */
static float *host_range(const struct engine *e, enum storage s, struct arena *a)
{
    bool shards = s != STORAGE_WEIGHTS && shards_state(e->program.config);
    if (!e->storage.base[s] || (shards && e->program.config->ranks.rank > 0)) return NULL;
    return e->backend->host_memory && !shards ? e->storage.base[s]
                                              : ARENA_NEW(a, float, e->program.model.elements);
}

struct weights_tensor *weights_tensors(const struct engine *e, struct arena *a)
{
    struct weights_tensor *all = ARENA_NEW(a, struct weights_tensor, e->program.model.parameters);
    const struct optimizer *o = optimizer_of(e->program.config);
    float *weights = host_range(e, STORAGE_WEIGHTS, a), *state[OPTIMIZER_STATES] = {NULL};
    for (int k = 0; k < o->states; k++) state[k] = host_range(e, o->state[k].storage, a);
    for (int i = 0; i < e->program.model.parameters; i++) {
        const struct parameter *p = &e->program.model.parameter[i];
        struct weights_tensor *t = &all[i];
        *t = (struct weights_tensor){.name = p->name, .rank = p->type.rank};
        for (int d = 0; d < p->type.rank; d++) t->dim[d] = p->type.dim[d];
        t->weight = weights ? weights + p->offset : NULL;
        for (int k = 0; k < o->states; k++) {
            t->state[k].suffix = o->state[k].suffix;
            t->state[k].data = state[k] ? state[k] + p->offset : NULL;
        }
    }
    return all;
}

/* Copies a whole range; `host` points to the first parameter in the host copy. */
static enum status copy_range(const struct engine *e, enum storage s, float *host, bool to_host)
{
    void *device = e->storage.base[s];
    int64_t bytes = e->program.model.elements * (int64_t)sizeof(float);
    if (!device) return ST_OK;
    void *copied = host - e->program.model.parameter[0].offset;
    return to_host ? e->backend->memory.download(e->context, copied, device, bytes)
                   : e->backend->memory.upload(e->context, device, copied, bytes);
}

static enum status copy(const struct engine *e, const struct weights_tensor *t, bool to_host)
{
    const struct optimizer *o = optimizer_of(e->program.config);
    if (e->backend->host_memory || !e->program.model.parameters) return ST_OK;
    TRY(copy_range(e, STORAGE_WEIGHTS, t->weight, to_host));
    for (int k = 0; k < o->states && !shards_state(e->program.config); k++)
        TRY(copy_range(e, o->state[k].storage, t->state[k].data, to_host));
    return ST_OK;
}

enum status weights_fetch(const struct engine *e, const struct weights_tensor *tensors)
{
    return copy(e, tensors, true);
}

enum status weights_bring(struct engine *e, const struct weights_tensor *tensors)
{
    TRY(copy(e, tensors, false));
    return engine_refresh(e);
}

/* The address of this rank's state of a bucket, and where the shard is in the bucket. */
static char *shard_address(const struct engine *e, int state, int64_t k, int64_t *ret_at,
                           int64_t *ret_bytes)
{
    const struct config *c = e->program.config;
    int64_t elements = e->program.model.elements;
    struct shard_part own = shard_of_bucket(c, elements, k), all = shard_bucket(c, elements, k);
    float *base = e->storage.base[optimizer_of(c)->state[state].storage];
    *ret_at = own.first - all.first;
    *ret_bytes = own.elements * (int64_t)sizeof *base;
    return (char *)(base + own.state);
}

enum status weights_fetch_shard(const struct engine *e, int state, int64_t k, float *bucket)
{
    int64_t at, bytes;
    char *device = shard_address(e, state, k, &at, &bytes);
    return bytes ? e->backend->memory.download(e->context, bucket + at, device, bytes) : ST_OK;
}

enum status weights_bring_shard(const struct engine *e, int state, int64_t k, const float *bucket)
{
    int64_t at, bytes;
    char *device = shard_address(e, state, k, &at, &bytes);
    return bytes ? e->backend->memory.upload(e->context, device, bucket + at, bytes) : ST_OK;
}
