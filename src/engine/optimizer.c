#include "engine/optimizer.h"

#include "engine/copies.h"
#include "engine/lr.h"
#include "engine/shards.h"
#include "graph/build.h"

#include <math.h>
#include <string.h>

static const double ADAM_EPS = 1e-8;
static const double CLIP_EPS = 1e-6;

static union attr adamw_attr(const struct config_train *c, int64_t decay_elements)
{
    return (union attr){.adamw = {c->beta1, c->beta2, ADAM_EPS, c->weight_decay, decay_elements}};
}

static union attr sgd_attr(const struct config_train *c, int64_t decay_elements)
{
    return (union attr){.sgd = {c->momentum, c->weight_decay, decay_elements}};
}

/* 1 - beta^t, t from 1: the bias correction of moments that begin at zero. */
static double bias1_at(const struct config_train *c, int64_t iter)
{
    return 1 - pow(c->beta1, (double)(iter + 1));
}

static double bias2_at(const struct config_train *c, int64_t iter)
{
    return 1 - pow(c->beta2, (double)(iter + 1));
}

static const struct optimizer optimizers[OPTIMIZER_COUNT] = {
    [OPTIMIZER_ADAMW] = {.name = "AdamW",
                         .states = 2,
                         .state = {{STORAGE_MOMENT1, ".m"}, {STORAGE_MOMENT2, ".v"}},
                         .inputs = 3,
                         .input = {{"lr", lr_at, 1e-4},
                                   {"bias1", bias1_at, 0.1},
                                   {"bias2", bias2_at, 0.05}},
                         .op = OP_ADAMW,
                         .attr = adamw_attr},
    [OPTIMIZER_SGD] = {.name = "SGD",
                       .states = 1,
                       .state = {{STORAGE_MOMENT1, ".momentum"}},
                       .inputs = 1,
                       .input = {{"lr", lr_at, 1e-4}},
                       .op = OP_SGDM,
                       .attr = sgd_attr},
};

const struct optimizer *optimizer_of(const struct config *c)
{
    return &optimizers[c->train.optimizer];
}

static value leaf(struct graph *g, const struct parameter *p, enum storage storage)
{
    return g_leaf_named(g, storage, p->name, p->type, p->offset);
}

/* The gradients, summed over the ranks, from element `first` on. */
static value gradient_range(struct graph *g, const struct config *c, const char *name,
                            struct type t, int64_t first)
{
    bool reduced = shards_reduce_bf16(c);
    t.dtype = reduced ? DT_BF16 : DT_F32;
    return g_leaf_named(g, reduced ? STORAGE_REDUCED : STORAGE_GRADIENTS, name, t, first);
}

static value gradient_norm(struct graph *g, const struct model *m, const struct config *c)
{
    value sum = {0};
    struct graph_scope here = graph_enter(g, "grad_norm", -1);
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        value s = g_sum_squares(g, gradient_range(g, c, p->name, p->type, p->offset));
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

static struct optimizer_operands operands_of(struct graph *g, const struct config *c,
                                             const struct optimizer *o, const struct parameter *p)
{
    struct optimizer_operands in = {.weights = leaf(g, p, STORAGE_WEIGHTS)};
    for (int k = 0; k < o->states; k++) in.state[k] = leaf(g, p, o->state[k].storage);
    in.gradient =
        graph_find_leaf(g, shards_reduce_bf16(c) ? STORAGE_REDUCED : STORAGE_GRADIENTS, p->name);
    return in;
}

/* Appends the operator of the optimizer; the first `decayed` elements have weight decay. */
static value update_by_operator(struct graph *g, const struct optimizer *o,
                                const struct config_train *c, int64_t decayed,
                                const struct optimizer_operands *in)
{
    union attr attr = o->attr(c, decayed);
    value list[MAX_IN];
    int n = 0;
    list[n++] = in->weights;
    for (int k = 0; k < o->states; k++) list[n++] = in->state[k];
    list[n++] = in->gradient;
    for (int k = 0; k < o->inputs; k++) list[n++] = in->input[k];
    list[n++] = in->clip;
    return graph_add(g, o->op, &attr, n, list, NULL);
}

static void add_inputs(struct graph *g, const struct optimizer *o, value ret[OPTIMIZER_INPUTS])
{
    for (int i = 0; i < o->inputs; i++) ret[i] = g_input(g, o->input[i].name, type_scalar(DT_F32));
}

static value add_clip(struct graph *g, const struct config_train *c, value norm)
{
    graph_output(g, "grad_norm", norm);
    struct graph_scope top = graph_enter(g, "clip", -1);
    value clip = clip_coefficient(g, norm, c->grad_clip);
    graph_leave(g, top);
    return clip;
}

static void update_all(struct graph *g, const struct model *m, const struct config *config,
                       const struct optimizer *o)
{
    const struct config_train *c = &config->train;
    value input[OPTIMIZER_INPUTS] = {{0}};
    add_inputs(g, o, input);
    value clip = add_clip(g, c, gradient_norm(g, m, config));
    struct graph_scope top = {g->scope, g->layer};
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        struct optimizer_operands in = operands_of(g, config, o, p);
        memcpy(in.input, input, sizeof input);
        in.clip = clip;
        g->scope = p->name;
        int64_t decayed = p->decay ? type_elements(&p->type) : 0;
        value w = o->build ? o->build(g, c, p, &in) : update_by_operator(g, o, c, decayed, &in);
        if (copies_bf16(config)) copies_store(g, p, w);
        graph_leave(g, top);
    }
}

/* --- a rank's shards -------------------------------------------------------------------------- */

static value range_leaf(struct graph *g, enum storage storage, int64_t first, int64_t elements)
{
    return g_leaf_named(g, storage, "shard", type_1d(DT_F32, elements), first);
}

static value collective(struct graph *g, enum op op, const struct config *c, value leaf)
{
    union attr attr = {.group = {(int)c->ranks.count}};
    return graph_add(g, op, &attr, 1, &leaf, NULL);
}

/* The offset of a shard in the rank's weights and gradients. */
static int64_t place_of(const struct config *c, const struct shard_part *s)
{
    return shards_weights(c) ? s->state : s->first;
}

/* The float after the gradients, in which the ranks sum their squared norms. */
static value norm_leaf(struct graph *g, const struct model *m, const struct config *c)
{
    int64_t end = shards_weights(c) ? shard_state_elements(c, m) : m->elements;
    return shards_reduce_bf16(c) ? range_leaf(g, STORAGE_REDUCED, end / 2, 1)
                                 : range_leaf(g, STORAGE_GRADIENTS, end, 1);
}

/* The gradient norm: sums the squares of this rank's shards, then over all ranks. */
static value shared_norm(struct graph *g, const struct model *m, const struct config *c)
{
    struct graph_scope here = graph_enter(g, "grad_norm", -1);
    value sum = g_fill(g, type_scalar(DT_F32), 0);
    for (int64_t k = 0; k < shard_buckets(c, m); k++) {
        struct shard_part s = shard_of_bucket(c, m, k);
        if (!s.elements) continue;
        value x = gradient_range(g, c, "shard", type_1d(DT_F32, s.elements), place_of(c, &s));
        sum = g_add(g, sum, g_sum_squares(g, x));
    }
    g_store(g, norm_leaf(g, m, c), sum);
    collective(g, OP_ALL_REDUCE, c, norm_leaf(g, m, c));
    sum = collective(g, OP_AWAIT, c, norm_leaf(g, m, c));
    value norm = g_sqrt(g, sum);
    graph_leave(g, here);
    return norm;
}

/* The end of the parameters with weight decay, which come first in `all`, the range or a unit. */
static int64_t decay_end(const struct model *m, const struct shard_part *all)
{
    int64_t end = all->first;
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        if (p->offset < all->first || p->offset >= all->first + all->elements) continue;
        BUG_IF(p->decay && p->offset > end, "%s decays, but one before it does not", p->name);
        if (p->decay) end = p->offset + range_elements(&p->type);
    }
    return end;
}

static void gather_weights(struct graph *g, const struct model *m, const struct config *c)
{
    for (int op = 0; op < 2; op++)
        for (int64_t k = 0; k < shard_buckets(c, m); k++) {
            struct shard_part b = shard_bucket(c, m, k);
            g->scope = arena_printf(g->arena, "bucket.%lld", (long long)k);
            collective(g, op ? OP_AWAIT : OP_ALL_GATHER, c,
                       range_leaf(g, STORAGE_WEIGHTS, b.first, b.elements));
        }
    g->scope = "";
}

static void update_shards(struct graph *g, const struct model *m, const struct config *config,
                          const struct optimizer *o)
{
    const struct config_train *c = &config->train;
    value input[OPTIMIZER_INPUTS] = {{0}};
    BUG_IF(o->build, "%s has no operator that updates a shard", o->name);
    add_inputs(g, o, input);
    value clip = add_clip(g, c, shared_norm(g, m, config));
    for (int64_t k = 0; k < shard_buckets(config, m); k++) {
        struct shard_part s = shard_of_bucket(config, m, k);
        if (!s.elements) continue;
        struct shard_part all = {.elements = m->elements};
        if (m->units) all = shard_bucket(config, m, k);
        int64_t decayed = decay_end(m, &all);
        struct optimizer_operands in = {.clip = clip};
        memcpy(in.input, input, sizeof input);
        int64_t place = place_of(config, &s);
        in.weights = range_leaf(g, STORAGE_WEIGHTS, place, s.elements);
        in.gradient = gradient_range(g, config, "shard", type_1d(DT_F32, s.elements), place);
        for (int i = 0; i < o->states; i++)
            in.state[i] = range_leaf(g, o->state[i].storage, s.state, s.elements);
        g->scope = arena_printf(g->arena, "shard.%lld", (long long)k);
        update_by_operator(g, o, c, min_i64(s.elements, max_i64(0, decayed - s.first)), &in);
        g->scope = "";
    }
    if (shards_weights(config)) return;
    gather_weights(g, m, config);
    copies_refresh_all(g, config, m);
}

void optimizer_update(struct graph *g, const struct model *m, const struct config *config,
                      const struct optimizer *o)
{
    g->phase = PHASE_UPDATE;
    if (shards_state(config))
        update_shards(g, m, config, o);
    else
        update_all(g, m, config, o);
}
