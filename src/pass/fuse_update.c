/* Fuses the update: one gradient norm and one AdamW over all parameters. All ranges have the same
 * layout (op.h), with zeros between the leaves. */
#include "graph/build.h"
#include "pass/fuse.h"

#include <string.h>

struct range {
    int64_t first, last; /* elements, [first, last) */
    int64_t covered;
    int leaves;
};

static void range_add(struct range *r, const struct graph *g, const struct node *leaf)
{
    int64_t first = leaf->attr.leaf.offset;
    int64_t last = first + range_elements(graph_type(g, leaf->out[0]));
    if (!r->leaves || first < r->first) r->first = first;
    if (!r->leaves || last > r->last) r->last = last;
    r->covered += last - first;
    r->leaves++;
}

/* True if the leaves are contiguous. */
static bool range_is_whole(const struct range *r)
{
    return r->leaves > 1 && r->covered == r->last - r->first;
}

static value range_leaf(struct fuse *f, enum storage storage, const struct range *r,
                        enum dtype dtype)
{
    const char *scope = f->out->scope;
    f->out->scope = "";
    value v = g_leaf(f->out, storage, "all", type_1d(dtype, r->last - r->first), r->first);
    f->out->scope = scope;
    return v;
}

/* True if `v` is a sum of SUM_SQUARES of gradients; collects their leaves. */
static bool is_norm_part(const struct fuse *f, value v, struct range *r)
{
    const struct node *n = graph_producer(f->in, v);
    if (n->op == OP_ADD) return is_norm_part(f, n->in[0], r) && is_norm_part(f, n->in[1], r);
    if (n->op != OP_SUM_SQUARES) return false;
    const struct node *leaf = graph_producer(f->in, n->in[0]);
    if (leaf->op != OP_LEAF || leaf->attr.leaf.storage != STORAGE_GRADIENTS) return false;
    range_add(r, f->in, leaf);
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
    struct range r = {0};
    if (n->op != OP_ADD || is_partial_sum(f, id) || !is_norm_part(f, n->out[0], &r)) return false;
    if (!range_is_whole(&r)) return false;
    value all = range_leaf(f, STORAGE_GRADIENTS, &r, graph_type(f->in, n->out[0])->dtype);
    f->map[n->out[0].i] = g_sum_squares(f->out, all);
    return true;
}

/* True if all AdamW nodes can become one: they have the same scalars, and decayed parameters come
 * before the others. */
static bool adamw_fits(const struct fuse *f, struct range *all, int64_t *ret_decayed, int *ret_last)
{
    const struct node *first = NULL;
    int64_t decay_end = 0, free_start = INT64_MAX;
    for (int id = 0; id < f->in->nodes; id++) {
        const struct node *n = &f->in->node[id];
        if (n->op != OP_ADAMW) continue;
        if (!first) first = n;
        if (n->attr.adamw.beta1 != first->attr.adamw.beta1 ||
            n->attr.adamw.beta2 != first->attr.adamw.beta2 ||
            n->attr.adamw.eps != first->attr.adamw.eps ||
            n->attr.adamw.weight_decay != first->attr.adamw.weight_decay ||
            memcmp(n->in + 4, first->in + 4, 4 * sizeof(value)))
            return false;
        struct range own = {0};
        range_add(&own, f->in, graph_producer(f->in, n->in[0]));
        range_add(all, f->in, graph_producer(f->in, n->in[0]));
        for (int i = 0; i < 4; i++) {
            const struct node *leaf = graph_producer(f->in, n->in[i]);
            if (leaf->op != OP_LEAF || leaf->attr.leaf.offset != own.first) return false;
        }
        int64_t decayed = n->attr.adamw.decay_elements;
        if (decayed && decayed != type_elements(graph_type(f->in, n->in[0]))) return false;
        if (decayed && own.last > decay_end) decay_end = own.last;
        if (!decayed && own.first < free_start) free_start = own.first;
        *ret_last = id;
    }
    *ret_decayed = decay_end > all->first ? decay_end - all->first : 0;
    return first && range_is_whole(all) && decay_end <= free_start;
}

/* The store of the bf16 copy of the weights that AdamW node `n` produces, or NULL. */
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
        if (n->op != OP_ADAMW) continue;
        if (!(store = copy_store(g, n))) return false;
        if (graph_producer(g, store->in[0])->attr.leaf.offset !=
            graph_producer(g, n->in[0])->attr.leaf.offset)
            return false;
    }
    return true;
}

/* adamw per parameter -> one adamw over the range, which also writes the bf16 copy if one is
 * kept */
bool fuse_adamw(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id];
    struct range all = {0};
    int64_t decayed;
    int last;
    if (n->op != OP_ADAMW || !adamw_fits(f, &all, &decayed, &last)) return false;
    if (id != last) return true; /* the last one replaces all */
    static const enum storage storages[] = {STORAGE_WEIGHTS, STORAGE_MOMENT1, STORAGE_MOMENT2,
                                            STORAGE_COPY, STORAGE_GRADIENTS};
    enum dtype dtype = graph_type(f->in, n->in[0])->dtype;
    bool copy = all_copied(f->in);
    union attr attr = n->attr;
    attr.adamw.decay_elements = decayed;
    value in[MAX_IN];
    int n_in = 0;
    for (int i = 0; i < COUNT_OF(storages); i++) {
        bool is_copy = storages[i] == STORAGE_COPY;
        if (is_copy && !copy) continue;
        in[n_in++] = range_leaf(f, storages[i], &all, is_copy ? DT_BF16 : dtype);
    }
    for (int i = 4; i < 8; i++) in[n_in++] = f->map[n->in[i].i];
    f->out->scope = "optimizer";
    graph_add(f->out, copy ? OP_ADAMW_COPY : OP_ADAMW, &attr, n_in, in, NULL);
    return true;
}

/* adamw, cast, store: the fused adamw includes the cast and the store */
bool fuse_adamw_copy(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id], *adamw;
    struct range all = {0};
    int64_t decayed;
    int last;
    if (n->op != OP_CAST && n->op != OP_STORE) return false;
    const struct node *cast = n->op == OP_CAST ? n : graph_producer(f->in, n->in[1]);
    if (cast->op != OP_CAST) return false;
    adamw = graph_producer(f->in, cast->in[0]);
    if (adamw->op != OP_ADAMW || !copy_store(f->in, adamw)) return false;
    return adamw_fits(f, &all, &decayed, &last) && all_copied(f->in);
}
