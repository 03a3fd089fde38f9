/* Fuses the update into one gradient norm and one optimizer node over all parameters. This is
 * possible because weights, gradients and moments have the same layout (op.h), with zeros between
 * the leaves. */
#include "graph/attr.h"
#include "graph/build.h"
#include "pass/fuse.h"

#include <string.h>

struct address_range {
    int64_t first, last; /* elements, [first, last) */
    int64_t covered;
    int leaves;
};

static void range_add(struct address_range *r, const struct graph *g, const struct node *leaf)
{
    int64_t first = leaf->attr.leaf.offset;
    int64_t last = first + range_elements(graph_type(g, leaf->out[0]));
    if (!r->leaves || first < r->first) r->first = first;
    if (!r->leaves || last > r->last) r->last = last;
    r->covered += last - first;
    r->leaves++;
}

/* True if the leaves are contiguous. */
static bool range_is_whole(const struct address_range *r)
{
    return r->leaves > 1 && r->covered == r->last - r->first;
}

static value range_leaf(struct fuse *f, enum storage storage, const struct address_range *r,
                        enum dtype dtype)
{
    return g_leaf_named(f->out, storage, "all", type_1d(dtype, r->last - r->first), r->first);
}

/* True if `v` is a sum of SUM_SQUARES of gradients; adds the leaves of these gradients to `r` and
 * returns one of them. */
static bool is_norm_part(const struct fuse *f, value v, struct address_range *r,
                         const struct node **ret_leaf)
{
    const struct node *n = graph_producer(f->in, v);
    if (n->op == OP_ADD)
        return is_norm_part(f, n->in[0], r, ret_leaf) && is_norm_part(f, n->in[1], r, ret_leaf);
    if (n->op != OP_SUM_SQUARES) return false;
    const struct node *leaf = graph_producer(f->in, n->in[0]);
    enum storage storage = leaf->attr.leaf.storage;
    if (leaf->op != OP_LEAF || (storage != STORAGE_GRADIENTS && storage != STORAGE_REDUCED))
        return false;
    range_add(r, f->in, leaf);
    *ret_leaf = leaf;
    return true;
}

static bool is_partial_sum(const struct fuse *f, int id)
{
    value v = f->in->node[id].out[0];
    for (int later = id + 1; later < f->in->nodes; later++) {
        const struct node *n = &f->in->node[later];
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i].i == v.i && n->op == OP_ADD) return true;
    }
    return false;
}

/* sum of sum_squares(gradient) -> sum_squares(all gradients) */
bool fuse_sum_squares(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id];
    const struct node *leaf;
    struct address_range r = {0};
    if (n->op != OP_ADD || is_partial_sum(f, id) || !is_norm_part(f, n->out[0], &r, &leaf))
        return false;
    if (!range_is_whole(&r)) return false;
    value all = range_leaf(f, leaf->attr.leaf.storage, &r, graph_type(f->in, leaf->out[0])->dtype);
    f->map[n->out[0].i] = g_sum_squares(f->out, all);
    return true;
}

/* THE list of operators that update one parameter. The operator `copying` also writes the bf16
 * copy. The inputs are weights, state, gradient, scalars; `copying` has the copy as one more input,
 * before the gradient. */
static const struct update {
    enum op op, copying;
    size_t decay_elements; /* offset in union attr of the number of elements that decay */
} updates[] = {
    {OP_ADAMW, OP_ADAMW_COPY, offsetof(union attr, adamw.decay_elements)},
    {OP_SGDM, OP_SGDM_COPY, offsetof(union attr, sgd.decay_elements)},
};

static const struct update *update_of(enum op op)
{
    for (int i = 0; i < COUNT_OF(updates); i++)
        if (updates[i].op == op) return &updates[i];
    return NULL;
}

static int64_t *decay_elements(const struct update *u, union attr *attr)
{
    return (int64_t *)((char *)attr + u->decay_elements);
}

/* True if both nodes have the same scalar inputs and attributes, except for decay_elements. */
static bool same_update(const struct update *u, const struct node *a, const struct node *b)
{
    union attr x = a->attr, y = b->attr;
    int numbers = op_writes(u->op) + 1;
    *decay_elements(u, &x) = *decay_elements(u, &y) = 0;
    return a->op == b->op && attr_same(u->op, &x, &y, true) &&
           !memcmp(a->in + numbers, b->in + numbers, (size_t)(a->n_in - numbers) * sizeof(value));
}

/* True if one node can do all updates: they have equal scalars, and the parameters with weight
 * decay come before all others. */
static bool update_fits(const struct fuse *f, struct address_range *all, int64_t *ret_decayed,
                        int *ret_last)
{
    const struct node *first = NULL;
    int64_t decay_end = 0, free_start = INT64_MAX;
    for (int id = 0; id < f->in->nodes; id++) {
        const struct node *n = &f->in->node[id];
        const struct update *u = update_of(n->op);
        if (!u) continue;
        if (!first) first = n;
        if (!same_update(u, n, first)) return false;
        struct address_range own = {0};
        range_add(&own, f->in, graph_producer(f->in, n->in[0]));
        range_add(all, f->in, graph_producer(f->in, n->in[0]));
        for (int i = 0; i <= op_writes(n->op); i++) {
            const struct node *leaf = graph_producer(f->in, n->in[i]);
            if (leaf->op != OP_LEAF || leaf->attr.leaf.offset != own.first) return false;
        }
        union attr attr = n->attr;
        int64_t decayed = *decay_elements(u, &attr);
        if (decayed && decayed != type_elements(graph_type(f->in, n->in[0]))) return false;
        if (decayed && own.last > decay_end) decay_end = own.last;
        if (!decayed && own.first < free_start) free_start = own.first;
        *ret_last = id;
    }
    *ret_decayed = decay_end > all->first ? decay_end - all->first : 0;
    return first && range_is_whole(all) && decay_end <= free_start;
}

/* The STORE of the weights that the update `n` produces into their bf16 copy, or NULL. */
static const struct node *copy_store(const struct graph *g, const struct node *n)
{
    for (int id = (int)(n - g->node) + 1; id < g->nodes; id++) {
        const struct node *store = &g->node[id];
        if (store->op != OP_STORE) continue;
        const struct node *to = graph_producer(g, store->in[0]);
        const struct node *cast = graph_producer(g, store->in[1]);
        if (to->attr.leaf.storage == STORAGE_COPY && cast->op == OP_CAST &&
            cast->in[0].i == n->out[0].i)
            return store;
    }
    return NULL;
}

/* True if a bf16 copy of every parameter is stored, each at the parameter's own offset. */
static bool all_copied(const struct graph *g)
{
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id], *store;
        if (!update_of(n->op)) continue;
        if (!(store = copy_store(g, n))) return false;
        if (graph_producer(g, store->in[0])->attr.leaf.offset !=
            graph_producer(g, n->in[0])->attr.leaf.offset)
            return false;
    }
    return true;
}

/* an update for each parameter -> one update over the range, which writes the bf16 copy if there is
 * one. Updates of shards are not fused: the shards of one rank may be contiguous and those of
 * another rank not, but all ranks must have the same kernels. */
bool fuse_update(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id];
    const struct update *u = update_of(n->op);
    struct address_range all = {0};
    int64_t decayed;
    int last, n_in = 0, state = op_writes(n->op);
    if (!u || f->options->zero || !update_fits(f, &all, &decayed, &last)) return false;
    if (id != last) return true; /* the fused update takes the place of the last update */
    bool copy = all_copied(f->in);
    union attr attr = n->attr;
    *decay_elements(u, &attr) = decayed;
    value in[MAX_IN];
    for (int i = 0; i <= state; i++) {
        if (i == state && copy) in[n_in++] = range_leaf(f, STORAGE_COPY, &all, DT_BF16);
        enum storage storage = graph_producer(f->in, n->in[i])->attr.leaf.storage;
        in[n_in++] = range_leaf(f, storage, &all, graph_type(f->in, n->in[i])->dtype);
    }
    for (int i = state + 1; i < n->n_in; i++) in[n_in++] = f->map[n->in[i].i];
    f->out->scope = "optimizer";
    graph_add(f->out, copy ? u->copying : u->op, &attr, n_in, in, NULL);
    return true;
}

/* update, cast, store -> drops cast and store, because the fused update writes the copy */
bool fuse_update_copy(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id], *update;
    struct address_range all = {0};
    int64_t decayed;
    int last;
    if (n->op != OP_CAST && n->op != OP_STORE) return false;
    const struct node *cast = n->op == OP_CAST ? n : graph_producer(f->in, n->in[1]);
    if (cast->op != OP_CAST) return false;
    update = graph_producer(f->in, cast->in[0]);
    if (!update_of(update->op) || !copy_store(f->in, update)) return false;
    return update_fits(f, &all, &decayed, &last) && all_copied(f->in);
}
