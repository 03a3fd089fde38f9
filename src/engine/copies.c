#include "engine/copies.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "engine/program.h"
#include "engine/shards.h"
#include "graph/build.h"

bool copies_bf16(const struct config *c)
{
    return c->plan.fusion == FUSION_FULL && precision_is_mixed(c->plan.dtype) && !shards_weights(c);
}

static enum dtype matmul_dtype(const struct config *c)
{
    return precision_is_mixed(c->plan.dtype) ? DT_BF16 : DT_F32;
}

static struct type packed_type(const struct config *c, const struct type *matrix)
{
    return type_1d(matmul_dtype(c), packed_elements(matrix->dim[0], matrix->dim[1]));
}

/* True if the target has a kernel that packs weights of this type. */
static bool target_packs(const struct config *c, const struct type *matrix,
                         const struct target *target)
{
    union attr attr = {.pack = {false, c->data.batch_size * c->model.block_size}};
    struct kernel_call call = {
        .attr = &attr, .n_in = 1, .n_out = 1, .in_type = {*matrix}, .target = target};
    call.in_type[0].dtype = matmul_dtype(c);
    call.out_type[0] = packed_type(c, matrix);
    return target->backend->kernels.find(OP_PACK, &call, 0) != NULL;
}

/* Packing takes time once per update and saves time in each matmul (docs/MEASURING.md). */
static bool packing_pays(const struct config *c)
{
    enum { LEAST_TOKENS = 2048 };
    int64_t micro = c->data.batch_size * c->model.block_size;
    if (c->plan.pack_weights != PACKING_AUTO) return c->plan.pack_weights == PACKING_TRUE;
    return micro * micro_steps_of(c) >= LEAST_TOKENS;
}

const struct pass_packing *copies_packing(const struct config *c, const struct model *m,
                                          const struct target *target, struct arena *a)
{
    if (c->plan.fusion != FUSION_FULL || !packing_pays(c) || shards_weights(c)) return NULL;
    struct pass_packing *packing = ARENA_NEW(a, struct pass_packing, 1);
    struct packed_weight *w = ARENA_NEW(a, struct packed_weight, m->parameters);
    packing->rows = c->data.batch_size * c->model.block_size;
    packing->weight = w;
    int64_t at = 0;
    struct type matrix;
    for (int i = 0; i < m->parameters; i += model_matrix(m, i, &matrix)) {
        const struct parameter *p = &m->parameter[i];
        if (!p->matmul) continue;
        model_matrix(m, i, &matrix);
        if (!target_packs(c, &matrix, target)) return NULL;
        struct type t = packed_type(c, &matrix);
        w->weight = p->offset;
        w->elements = type_elements(&matrix);
        for (int tb = 0; tb < 2; tb++, at += range_elements(&t)) w->at[tb] = at;
        packing->n++;
        w++;
    }
    return packing->n ? packing : NULL;
}

void copies_store(struct graph *g, const struct parameter *p, value w)
{
    struct type t = p->type;
    t.dtype = DT_BF16;
    value cast = g_cast(g, w, DT_BF16);
    g_store(g, g_leaf_named(g, STORAGE_COPY, p->name, t, p->offset), cast);
}

void copies_refresh_all(struct graph *g, const struct config *c, const struct model *m)
{
    struct type t = type_1d(DT_F32, m->elements), copy = type_1d(DT_BF16, m->elements);
    if (!copies_bf16(c)) return;
    value w = g_leaf_named(g, STORAGE_WEIGHTS, "all", t, 0);
    g_store(g, g_leaf_named(g, STORAGE_COPY, "all", copy, 0), g_cast(g, w, DT_BF16));
}

static void pack_one(struct graph *g, const struct config *c, const struct parameter *p, value from,
                     int64_t rows, const int64_t *at)
{
    struct type t = packed_type(c, graph_type(g, from));
    for (int tb = 0; tb < 2; tb++) {
        union attr attr = {.pack = {tb, rows}};
        const char *name = arena_printf(g->arena, "%s%s", p->name, tb ? ".transposed" : "");
        value packed = graph_add(g, OP_PACK, &attr, 1, &from, NULL);
        g_store(g, g_leaf_named(g, STORAGE_PACKED, name, t, at[tb]), packed);
    }
}

void copies_pack(struct graph *g, const struct config *c, const struct model *m,
                 const struct pass_packing *packing)
{
    const struct packed_weight *w = packing ? packing->weight : NULL;
    struct type t;
    for (int i = 0; w && i < m->parameters; i += model_matrix(m, i, &t)) {
        const struct parameter *p = &m->parameter[i];
        if (!p->matmul) continue;
        model_matrix(m, i, &t);
        t.dtype = matmul_dtype(c);
        /* A leaf added after the update has the value that the update wrote. */
        enum storage storage = copies_bf16(c) ? STORAGE_COPY : STORAGE_WEIGHTS;
        value from = g_leaf_named(g, storage, p->name, t, p->offset);
        g->scope = p->name;
        pack_one(g, c, p, from, packing->rows, w->at);
        g->scope = "";
        w++;
    }
}

void copies_refresh(struct graph *g, const struct config *c, const struct model *m,
                    const struct pass_packing *packing)
{
    g->phase = PHASE_UPDATE;
    for (int i = 0; i < m->parameters && copies_bf16(c); i++) {
        const struct parameter *p = &m->parameter[i];
        value w = g_leaf_named(g, STORAGE_WEIGHTS, p->name, p->type, p->offset);
        g->scope = p->name;
        copies_store(g, p, w);
        g->scope = "";
    }
    copies_pack(g, c, m, packing);
}
