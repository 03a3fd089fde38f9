#include "train/weights.h"

#include "backend/backend.h"

#include <stdlib.h>

enum status weights_draw(struct engine *e)
{
    if (!e->program.model.parameters) return ST_OK;
    float *weights = malloc((size_t)e->program.model.elements * sizeof *weights);
    enum status st = ST_OK;
    BUG_IF(!weights, "no host memory");
    static const enum storage zeroed[] = {STORAGE_MOMENT1, STORAGE_MOMENT2, STORAGE_AMAX};
    for (int i = 0; i < COUNT_OF(zeroed); i++) {
        void *range = e->storage.base[zeroed[i]];
        if (range) TRY_OUT(st, e->backend->fill(e->context, range, 0, e->storage.bytes[zeroed[i]]));
    }
    model_draw(&e->program.model, weights);
    TRY_OUT(st, e->backend->upload(e->context, e->storage.base[STORAGE_WEIGHTS], weights,
                                   e->storage.bytes[STORAGE_WEIGHTS]));
    TRY_OUT(st, engine_refresh(e));
out:
    free(weights);
    return st;
}

/* Where a range is on the host: the engine's own memory, or a copy of it. */
static float *host_range(const struct engine *e, enum storage s, struct arena *a)
{
    if (!e->storage.base[s]) return NULL;
    return e->backend->host_memory ? e->storage.base[s]
                                   : ARENA_NEW(a, float, e->program.model.elements);
}

struct checkpoint_tensor *weights_tensors(const struct engine *e, struct arena *a)
{
    struct checkpoint_tensor *all =
        ARENA_NEW(a, struct checkpoint_tensor, e->program.model.parameters);
    float *weights = host_range(e, STORAGE_WEIGHTS, a), *m1 = host_range(e, STORAGE_MOMENT1, a),
          *m2 = host_range(e, STORAGE_MOMENT2, a);
    for (int i = 0; i < e->program.model.parameters; i++) {
        const struct parameter *p = &e->program.model.parameter[i];
        struct checkpoint_tensor *t = &all[i];
        *t = (struct checkpoint_tensor){.name = p->name, .rank = p->type.rank};
        for (int d = 0; d < p->type.rank; d++) t->dim[d] = p->type.dim[d];
        t->weight = weights ? weights + p->offset : NULL;
        t->moment1 = m1 ? m1 + p->offset : NULL;
        t->moment2 = m2 ? m2 + p->offset : NULL;
    }
    return all;
}

static enum status copy(const struct engine *e, const struct checkpoint_tensor *t, bool to_host)
{
    const enum storage ranges[] = {STORAGE_WEIGHTS, STORAGE_MOMENT1, STORAGE_MOMENT2};
    float *const host[] = {t->weight, t->moment1, t->moment2};
    int64_t first = e->program.model.parameter[0].offset;
    if (e->backend->host_memory) return ST_OK;
    for (int i = 0; i < COUNT_OF(ranges); i++) {
        void *device = e->storage.base[ranges[i]];
        int64_t bytes = e->program.model.elements * (int64_t)sizeof(float);
        if (!device) continue;
        void *copied = host[i] - first;
        TRY(to_host ? e->backend->download(e->context, copied, device, bytes)
                    : e->backend->upload(e->context, device, copied, bytes));
    }
    return ST_OK;
}

enum status weights_fetch(const struct engine *e, const struct checkpoint_tensor *tensors)
{
    return copy(e, tensors, true);
}

enum status weights_bring(struct engine *e, const struct checkpoint_tensor *tensors)
{
    TRY(copy(e, tensors, false));
    return engine_refresh(e);
}
