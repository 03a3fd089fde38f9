#include "engine/weights.h"

#include "backend/backend.h"
#include "base/heap.h"
#include "engine/engine.h"
#include "engine/shards.h"

#include <stdlib.h>

/* Generates one bucket after another and keeps this rank's shards. */
static enum status init_shards(struct engine *e)
{
    const struct config *c = e->program.config;
    const struct model *m = &e->program.model;
    float *bucket = HEAP_NEW(float, shard_longest(c, m));
    enum status st = ST_OK;
    for (int64_t k = 0; k < shard_buckets(c, m); k++) {
        struct shard_part b = shard_bucket(c, m, k);
        model_init_part(m, b.first, b.first + b.elements, bucket);
        TRY_OUT(st, weights_bring_shard(e, STORAGE_WEIGHTS, k, bucket));
    }
out:
    free(bucket);
    return st;
}

static enum status init_range(struct engine *e)
{
    bool in_place = e->backend->host_memory;
    float *range = e->storage.base[STORAGE_WEIGHTS];
    float *weights =
        in_place ? range : heap_alloc(e->program.model.elements * (int64_t)sizeof *range);
    enum status st = ST_OK;
    model_init_weights(&e->program.model, weights);
    if (!in_place)
        st = e->backend->memory.upload(e->context, range, weights,
                                       e->storage.bytes[STORAGE_WEIGHTS]);
    if (!in_place) free(weights);
    return st;
}

enum status weights_init(struct engine *e)
{
    if (!e->program.model.parameters) return ST_OK;
    static const enum storage zeroed[] = {STORAGE_MOMENT1, STORAGE_MOMENT2, STORAGE_AMAX};
    for (int i = 0; i < COUNT_OF(zeroed); i++) {
        void *block = e->storage.base[zeroed[i]];
        if (block) TRY(e->backend->memory.fill(e->context, block, 0, e->storage.bytes[zeroed[i]]));
    }
    TRY(shards_weights(e->program.config) ? init_shards(e) : init_range(e));
    return engine_refresh(e);
}

bool weights_in_shards(const struct engine *e, enum storage s)
{
    const struct config *c = e->program.config;
    return s == STORAGE_WEIGHTS ? shards_weights(c) : shards_state(c);
}

/* The host address of a range: the engine's memory, or a new host copy. */
static float *host_range(const struct engine *e, enum storage s, struct arena *a)
{
    bool shards = weights_in_shards(e, s);
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
    if (!device || weights_in_shards(e, s)) return ST_OK;
    void *copied = host - e->program.model.parameter[0].offset;
    return to_host ? e->backend->memory.download(e->context, copied, device, bytes)
                   : e->backend->memory.upload(e->context, device, copied, bytes);
}

static enum status copy(const struct engine *e, const struct weights_tensor *t, bool to_host)
{
    const struct optimizer *o = optimizer_of(e->program.config);
    if (e->backend->host_memory || !e->program.model.parameters) return ST_OK;
    TRY(copy_range(e, STORAGE_WEIGHTS, t->weight, to_host));
    for (int k = 0; k < o->states; k++)
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

/* The address of this rank's shard of a bucket; *ret_at: its first element in the bucket. */
static char *shard_address(const struct engine *e, enum storage s, int64_t k, int64_t *ret_at,
                           int64_t *ret_bytes)
{
    const struct config *c = e->program.config;
    const struct model *m = &e->program.model;
    struct shard_part own = shard_of_bucket(c, m, k), all = shard_bucket(c, m, k);
    float *base = e->storage.base[s];
    *ret_at = own.first - all.first;
    *ret_bytes = own.elements * (int64_t)sizeof *base;
    return (char *)(base + own.state);
}

enum status weights_fetch_shard(const struct engine *e, enum storage s, int64_t k, float *bucket)
{
    int64_t at, bytes;
    char *device = shard_address(e, s, k, &at, &bytes);
    return bytes ? e->backend->memory.download(e->context, bucket + at, device, bytes) : ST_OK;
}

enum status weights_bring_shard(const struct engine *e, enum storage s, int64_t k,
                                const float *bucket)
{
    int64_t at, bytes;
    char *device = shard_address(e, s, k, &at, &bytes);
    return bytes ? e->backend->memory.upload(e->context, device, bucket + at, bytes) : ST_OK;
}
