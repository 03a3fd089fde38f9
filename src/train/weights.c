#include "train/weights.h"

#include "backend/backend.h"

#include <string.h>

enum status weights_draw(struct engine *e)
{
    struct arena scratch = {0};
    int64_t bytes = e->model.elements * (int64_t)sizeof(float);
    float *weights = arena_alloc(&scratch, bytes);
    enum status st = ST_OK;
    for (int s = STORAGE_MOMENT1; s <= STORAGE_MOMENT2; s++) /* still zero */
        if (e->storage.base[s])
            TRY_OUT(st, e->backend->upload(e->context, e->storage.base[s], weights,
                                           e->storage.bytes[s]));
    gpt_draw(&e->model, weights);
    TRY_OUT(st, e->backend->upload(e->context, e->storage.base[STORAGE_WEIGHTS], weights,
                                   e->storage.bytes[STORAGE_WEIGHTS]));
    TRY_OUT(st, engine_refresh(e));
out:
    arena_release(&scratch);
    return st;
}

static float *place(const struct engine *e, enum storage s, const struct parameter *p)
{
    float *base = e->storage.base[s];
    return base ? base + p->offset : NULL;
}

struct checkpoint_tensor *weights_tensors(const struct engine *e, struct arena *a)
{
    BUG_IF(strcmp(e->backend->name, "cpu") != 0, "the weights are not in host memory");
    struct checkpoint_tensor *all = ARENA_NEW(a, struct checkpoint_tensor, e->model.parameters);
    for (int i = 0; i < e->model.parameters; i++) {
        const struct parameter *p = &e->model.parameter[i];
        struct checkpoint_tensor *t = &all[i];
        *t = (struct checkpoint_tensor){.name = p->name, .rank = p->type.rank};
        for (int d = 0; d < p->type.rank; d++) t->dim[d] = p->type.dim[d];
        t->weight = place(e, STORAGE_WEIGHTS, p);
        t->moment1 = place(e, STORAGE_MOMENT1, p);
        t->moment2 = place(e, STORAGE_MOMENT2, p);
    }
    return all;
}
