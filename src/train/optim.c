#include "engine/optim.h"

#include "engine/copies.h"
#include "graph/build.h"

static const double ADAM_EPS = 1e-8;
static const double CLIP_EPS = 1e-6;

/* scope "h.0.attn.c_attn.weight" keeps the names of leaves and of the nodes that update them */
static value leaf(struct graph *g, const struct parameter *p, enum storage storage)
{
    struct graph_scope outside = {g->scope, g->layer};
    g->scope = "";
    value v = g_leaf(g, storage, p->name, p->type, p->offset);
    graph_leave(g, outside);
    return v;
}

static value gradient_norm(struct graph *g, const struct model *m)
{
    value sum = {0};
    struct graph_scope here = graph_enter(g, "grad_norm", -1);
    for (int i = 0; i < m->parameters; i++) {
        value s = g_sum_squares(g, leaf(g, &m->parameter[i], STORAGE_GRADIENTS));
        sum = i ? g_add(g, sum, s) : s;
    }
    value norm = m->parameters ? g_sqrt(g, sum) : g_fill(g, type_scalar(DT_F32), 0);
    graph_leave(g, here);
    return norm;
}

static value clip_coefficient(struct graph *g, value norm, double clip)
{
    struct type scalar = type_scalar(DT_F32);
    if (clip <= 0) return g_fill(g, scalar, 1);
    value ratio = g_div(g, g_fill(g, scalar, clip), g_offset(g, norm, CLIP_EPS));
    return g_at_most(g, ratio, 1);
}

void optim_update(struct graph *g, const struct model *m, const struct config *config)
{
    const struct config_train *c = &config->train;
    g->phase = PHASE_UPDATE;
    struct type scalar = type_scalar(DT_F32);
    value lr = g_input(g, "lr", scalar);
    value bias1 = g_input(g, "bias1", scalar), bias2 = g_input(g, "bias2", scalar);
    value norm = gradient_norm(g, m);
    graph_output(g, "grad_norm", norm);
    struct graph_scope top = graph_enter(g, "clip", -1);
    value clip = clip_coefficient(g, norm, c->grad_clip);
    graph_leave(g, top);
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        union attr attr = {.adamw = {c->beta1, c->beta2, ADAM_EPS, c->weight_decay,
                                     p->decay ? type_elements(&p->type) : 0}};
        value in[] = {leaf(g, p, STORAGE_WEIGHTS),
                      leaf(g, p, STORAGE_MOMENT1),
                      leaf(g, p, STORAGE_MOMENT2),
                      graph_find_leaf(g, STORAGE_GRADIENTS, p->name),
                      lr,
                      bias1,
                      bias2,
                      clip};
        g->scope = p->name;
        value w = graph_add(g, OP_ADAMW, &attr, 8, in, NULL);
        if (copies_bf16(config)) copies_store(g, p, w);
        graph_leave(g, top);
    }
}
