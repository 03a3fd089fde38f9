/* Live ranges of values. Values that share bytes form one class with one live range: a view and its
 * source, an output computed in place and its input, state and the updated state.
 *
 * Nodes are visited in schedule order. A class whose last use is node `id` dies there, so an output
 * of `id` may reuse the bytes of the class. */
#include "plan/liveness.h"

struct liveness {
    struct plan *p;
    const struct graph *g;
    int *last_use; /* per value: the last step that uses it, not counting uses of its views */
    int *read;     /* per owner: the last step visited so far that reads its bytes */
};

static struct span *root_of(struct plan *p, value v)
{
    return &p->span[p->span[v.i].root];
}

static void find_last_uses(struct liveness *l)
{
    for (int v = 0; v < l->g->values; v++) l->last_use[v] = -1;
    for (int id = 0; id < l->g->nodes; id++) {
        const struct node *n = &l->g->node[id];
        for (int i = 0; i < n->n_out; i++) l->last_use[n->out[i].i] = id;
        for (int i = 0; i < n->n_in; i++) l->last_use[n->in[i].i] = id;
    }
    for (int i = 0; i < l->g->outputs; i++) l->last_use[l->g->output[i].v.i] = l->g->nodes;
}

static void start_range(struct liveness *l, value v, int id)
{
    l->p->span[v.i] = (struct span){.storage = STORAGE_ARENA,
                                    .bytes = type_bytes(graph_type(l->g, v)),
                                    .first = id,
                                    .last = l->last_use[v.i],
                                    .root = v.i};
}

static void join(struct liveness *l, value v, value with)
{
    struct span *root = root_of(l->p, with);
    l->p->span[v.i] = (struct span){.root = l->p->span[with.i].root};
    if (l->last_use[v.i] > root->last) root->last = l->last_use[v.i];
}

static void place_leaf(struct liveness *l, const struct node *n, int id)
{
    value v = n->out[0];
    start_range(l, v, id);
    struct span *s = &l->p->span[v.i];
    s->storage = n->attr.leaf.storage;
    if (s->storage == STORAGE_INPUT) { /* fed before the first step */
        s->storage = STORAGE_ARENA;
        s->first = 0;
    } else {
        s->offset = n->attr.leaf.offset * dtype_size(graph_type(l->g, v)->dtype);
    }
}

static bool is_input(const struct liveness *l, int root)
{
    const struct node *n = graph_producer(l->g, (value){root});
    return n->op == OP_LEAF;
}

/* True if output 0 may overwrite input `i`: the input is in the arena and dies at node `id`. */
static bool may_reuse(const struct liveness *l, int id, int i)
{
    const struct node *n = &l->g->node[id];
    const struct span *root = root_of(l->p, n->in[i]);
    if (l->p->options.no_reuse || root->storage != STORAGE_ARENA || root->last != id) return false;
    if (is_input(l, root->root)) return false;
    for (int k = 0; k < n->n_in; k++)
        if (k != i && l->p->span[n->in[k].i].root == root->root) return false;
    return type_bytes(graph_type(l->g, n->out[0])) == type_bytes(graph_type(l->g, n->in[i]));
}

static void place_outputs(struct liveness *l, int id)
{
    const struct node *n = &l->g->node[id];
    unsigned flags = op_def(n->op)->flags;
    int i = 0;
    for (; i < op_writes(n->op); i++) join(l, n->out[i], n->in[i]);
    if (flags & OP_VIEW)
        join(l, n->out[i++], n->in[0]);
    else if (flags & OP_INPLACE && may_reuse(l, id, 0))
        join(l, n->out[i++], n->in[0]);
    else if (flags & OP_INPLACE_1 && may_reuse(l, id, 1))
        join(l, n->out[i++], n->in[1]);
    for (; i < n->n_out; i++) start_range(l, n->out[i], id);
}

/* STORE(leaf, x): if x is produced after the last read of the leaf and dies here, x is produced
 * directly in the leaf's bytes and the store becomes a no-op. */
static void store_in_place(struct liveness *l, int id)
{
    const struct node *n = &l->g->node[id];
    struct span *x = root_of(l->p, n->in[1]);
    const struct span *leaf = root_of(l->p, n->in[0]);
    if (l->p->options.no_reuse || x->storage != STORAGE_ARENA) return;
    if (x->last != id || is_input(l, x->root) || l->read[l->p->span[n->in[0].i].root] >= x->first)
        return;
    if (x->bytes != leaf->bytes) return;
    x->storage = leaf->storage;
    x->offset = leaf->offset;
    l->p->step[id].kernel = NULL;
}

/* Visits nodes in order, so that `read` has the earlier reads of each leaf, also through views. */
static void place_stores(struct liveness *l)
{
    for (int v = 0; v < l->g->values; v++) l->read[v] = -1;
    for (int id = 0; id < l->g->nodes; id++) {
        const struct node *n = &l->g->node[id];
        if (n->op == OP_STORE) store_in_place(l, id);
        for (int i = n->op == OP_STORE; i < n->n_in; i++) l->read[l->p->span[n->in[i].i].root] = id;
    }
}

enum { SMALL_INPUT_BYTES = 1 << 20 };
bool is_small_input(const struct plan *p, int v)
{
    const struct node *n = graph_producer(p->graph, (value){v});
    const struct span *s = &p->span[v];
    return n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_INPUT &&
           s->bytes <= SMALL_INPUT_BYTES;
}

static void unite_small_inputs(struct plan *p)
{
    int last = 0;
    for (int v = 1; v < p->graph->values; v++)
        if (is_small_input(p, v) && p->span[v].last > last) last = p->span[v].last;
    for (int v = 1; v < p->graph->values; v++)
        if (is_small_input(p, v)) p->span[v].last = last;
}

void liveness_find(struct plan *p, struct arena *scratch)
{
    struct liveness l = {.p = p, .g = p->graph};
    l.last_use = ARENA_NEW(scratch, int, p->graph->values);
    l.read = ARENA_NEW(scratch, int, p->graph->values);
    find_last_uses(&l);
    for (int id = 0; id < p->steps; id++) {
        const struct node *n = &p->graph->node[id];
        if (n->op == OP_LEAF)
            place_leaf(&l, n, id);
        else
            place_outputs(&l, id);
    }
    place_stores(&l);
    unite_small_inputs(p);
    for (int v = 1; v < p->graph->values; v++) { /* every member gets the span of its owner */
        int root = p->span[v].root;
        if (root != v) p->span[v] = p->span[root];
        p->span[v].root = root;
    }
}
