/* Live ranges of values. Values that share bytes form one class with one live range: a view and its
 * source, an output computed in place and its input, state and the updated state. All leaves of a
 * unit form one class, and the first of them is its root.
 *
 * Nodes are visited in schedule order. A class whose last use is node `id` dies there, so an output
 * of `id` may reuse the bytes of the class. */
#include "plan/liveness.h"

#include <stdlib.h>

struct liveness {
    struct plan *p;
    const struct graph *g;
    int *last_use;     /* per value: the last step that uses it, not counting uses of its views */
    int *read;         /* per root: the last step visited so far that reads its bytes */
    struct unit *unit; /* sorted by `first` */
    int units;
};

/* Leaves of STORAGE_UNIT that overlap: elements first ... end - 1. */
struct unit {
    int64_t first, end;
    int root; /* the first of the leaves */
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
    struct span *root = root_of(l->p, with), *own = &l->p->span[with.i];
    l->p->span[v.i] = (struct span){.root = own->root, .within = own->within};
    if (l->last_use[v.i] > root->last) root->last = l->last_use[v.i];
}

static int by_first(const void *a, const void *b)
{
    const struct unit *x = a, *y = b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->root - y->root;
}

static void find_units(struct liveness *l, struct arena *scratch)
{
    int n = 0;
    struct unit *u = l->unit = ARENA_NEW(scratch, struct unit, l->g->nodes);
    for (int id = 0; id < l->g->nodes; id++) {
        const struct node *leaf = &l->g->node[id];
        if (leaf->op != OP_LEAF || leaf->attr.leaf.storage != STORAGE_UNIT) continue;
        int64_t first = leaf->attr.leaf.offset;
        int64_t elements = type_elements(graph_type(l->g, leaf->out[0]));
        u[n++] = (struct unit){first, first + elements, leaf->out[0].i};
    }
    qsort(u, (size_t)n, sizeof *u, by_first);
    for (int i = 0; i < n; i++) {
        struct unit *last = l->units ? &u[l->units - 1] : NULL;
        if (!last || u[i].first >= last->end) {
            u[l->units++] = u[i];
            continue;
        }
        if (u[i].end > last->end) last->end = u[i].end;
        if (u[i].root < last->root) last->root = u[i].root;
    }
}

static const struct unit *unit_at(const struct liveness *l, int64_t offset)
{
    int low = 0, high = l->units;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (l->unit[middle].first <= offset)
            low = middle;
        else
            high = middle;
    }
    return &l->unit[low];
}

static void place_part(struct liveness *l, const struct node *leaf, int id)
{
    value v = leaf->out[0];
    const struct unit *u = unit_at(l, leaf->attr.leaf.offset);
    int64_t size = dtype_size(graph_type(l->g, v)->dtype);
    if (u->root == v.i) {
        start_range(l, v, id);
        l->p->span[v.i].bytes = (u->end - u->first) * size;
    } else {
        join(l, v, (value){u->root});
    }
    l->p->span[v.i].within = (leaf->attr.leaf.offset - u->first) * size;
}

static void place_leaf(struct liveness *l, const struct node *n, int id)
{
    value v = n->out[0];
    if (n->attr.leaf.storage == STORAGE_UNIT) {
        place_part(l, n, id);
        return;
    }
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

static bool is_leaf(const struct liveness *l, int root)
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
    if (is_leaf(l, root->root)) return false;
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
    struct span *x = root_of(l->p, n->in[1]), *leaf = root_of(l->p, n->in[0]);
    if (l->p->options.no_reuse || x->storage != STORAGE_ARENA) return;
    if (x->last != id || is_leaf(l, x->root) || l->read[l->p->span[n->in[0].i].root] >= x->first)
        return;
    if (x->bytes != type_bytes(graph_type(l->g, n->in[0]))) return;
    if (leaf->storage == STORAGE_ARENA) { /* a part of a unit */
        if (x->first < leaf->first) leaf->first = x->first;
        x->root = leaf->root;
        x->within = l->p->span[n->in[0].i].within;
    } else {
        x->storage = leaf->storage;
        x->offset = leaf->offset;
    }
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

bool is_unit(const struct plan *p, int v)
{
    const struct node *n = graph_producer(p->graph, (value){v});
    return n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_UNIT;
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

/* Every member gets the span of its root; but a part of a unit keeps its own size. A value that
 * store_in_place put into a part of a unit may itself be the root of other values, so roots are
 * followed in a chain. */
static void give_root(struct plan *p, int v)
{
    struct span *s = &p->span[v];
    int root = s->root;
    int64_t within = s->within;
    if (root == v) return;
    for (; p->span[root].root != root; root = p->span[root].root) within += p->span[root].within;
    *s = p->span[root];
    s->root = root;
    s->within = within;
    if (is_unit(p, root)) s->bytes = type_bytes(graph_type(p->graph, (value){v}));
}

void liveness_find(struct plan *p, struct arena *scratch)
{
    struct liveness l = {.p = p, .g = p->graph};
    l.last_use = ARENA_NEW(scratch, int, p->graph->values);
    l.read = ARENA_NEW(scratch, int, p->graph->values);
    find_last_uses(&l);
    find_units(&l, scratch);
    for (int id = 0; id < p->steps; id++) {
        const struct node *n = &p->graph->node[id];
        if (n->op == OP_LEAF)
            place_leaf(&l, n, id);
        else
            place_outputs(&l, id);
    }
    place_stores(&l);
    unite_small_inputs(p);
    for (int v = 1; v < p->graph->values; v++) give_root(p, v);
}
