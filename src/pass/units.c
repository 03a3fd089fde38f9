/* ZeRO stage 3: a rank stores only its shard of the weights and gradients (Rajbhandari et al.,
 * "ZeRO", SC 2020, section 5, P_os+g+p; Zhao et al., "PyTorch FSDP", VLDB 2023).
 *
 * A visit is a sequence of nodes that read weights of one unit and of no other. Before each visit,
 * the weights of the unit are gathered from the shards of all ranks, so no unit need stay in memory
 * after its visit. The gather starts when the visit before begins or, without overlap, right before
 * its own visit. The gradients of a unit are summed into the shards when all of them are written;
 * the graph awaits a sum before the next sum starts. The graphs of the ranks differ only in the
 * places of the shards, so all ranks start their collectives in the same order. */
#include "graph/build.h"
#include "pass/pass.h"

struct visit {
    int unit, node; /* the unit; the first node of the visit */
    int64_t at;     /* the place of the gathered weights in STORAGE_UNIT; each visit has its own */
    int layer;
    enum phase phase;
};

/* The sum of the gradients of a unit. */
struct sum {
    int64_t left; /* elements of the gradients that are not written yet */
    int64_t at;   /* the place of the gradients in STORAGE_UNIT; -1: none is written yet */
    int64_t end;  /* the end of the last gradient, in STORAGE_UNIT, that is written */
    int layer;
};

struct units {
    const struct graph *in;
    struct graph *out;
    const struct pass_options *o;
    value *map;
    int *unit_of; /* per value of `in`: 1 + the unit of a weight, or of its view or cast; else 0 */
    int *read_in; /* per value of `in`: 1 + the visit to which its value in `map` belongs */
    int *now;     /* per unit: its latest visit */
    int *writer, *next; /* as in shard.c */
    struct visit *visit;
    int visits, begun, started;
    struct sum *sum; /* of each unit */
    int awaited;     /* the unit whose sum has started and is not awaited yet; -1: none */
    int64_t used;    /* elements of STORAGE_UNIT that have been given out */
};

static int64_t unit_elements(const struct units *u, int unit)
{
    return u->o->units.first[unit + 1] - u->o->units.first[unit];
}

static int unit_at(const struct units *u, int64_t offset)
{
    int unit = 0;
    while (offset >= u->o->units.first[unit + 1]) unit++;
    return unit;
}

static int64_t new_place(struct units *u, int unit)
{
    int64_t at = u->used;
    u->used += unit_elements(u, unit);
    return at;
}

/* --- weights, visits and gradients of the graph ----------------------------------------------- */

static void find_weights(struct units *u)
{
    for (int id = 0; id < u->in->nodes; id++) {
        const struct node *n = &u->in->node[id];
        bool follows = n->n_in == 1 && (op_def(n->op)->flags & OP_VIEW || n->op == OP_CAST);
        if (pass_is_leaf_of(n, STORAGE_WEIGHTS))
            u->unit_of[n->out[0].i] = 1 + unit_at(u, n->attr.leaf.offset);
        else if (follows)
            u->unit_of[n->out[0].i] = u->unit_of[n->in[0].i];
    }
}

/* True for weights, and views and casts of weights. Such nodes are not copied; read_weight appends
 * them again in each visit that reads them. */
static bool is_of_unit(const struct units *u, const struct node *n)
{
    return n->n_out && u->unit_of[n->out[0].i];
}

static void find_visits(struct units *u)
{
    for (int id = 0; id < u->in->nodes; id++) {
        const struct node *n = &u->in->node[id];
        for (int i = 0; i < n->n_in && !is_of_unit(u, n); i++) {
            int unit = u->unit_of[n->in[i].i] - 1;
            if (unit < 0 || (u->visits && u->visit[u->visits - 1].unit == unit)) continue;
            u->visit[u->visits++] =
                (struct visit){unit, id, new_place(u, unit), n->layer, n->phase};
        }
    }
}

static void find_gradients(struct units *u)
{
    for (int k = 0; k < u->o->units.n; k++) u->sum[k].at = -1;
    for (int id = u->in->nodes - 1; id >= 0; id--) {
        const struct node *n = &u->in->node[id];
        if (!pass_writes_gradient(u->in, n)) continue;
        BUG_IF(n->op != OP_STORE, "%s writes the gradient of a unit", op_def(n->op)->name);
        const struct node *leaf = graph_producer(u->in, n->in[0]);
        int from = u->in->info[n->in[1].i].producer;
        u->next[id] = u->writer[from];
        u->writer[from] = id;
        u->sum[unit_at(u, leaf->attr.leaf.offset)].left +=
            range_elements(graph_type(u->in, leaf->out[0]));
    }
}

/* --- new nodes -------------------------------------------------------------------------------- */

static void enter(struct units *u, const char *what, int unit, int layer, enum phase phase)
{
    struct graph *g = u->out;
    g->phase = phase;
    g->layer = layer;
    g->region = 0;
    g->numerics = (struct numerics){0};
    g->scope = arena_printf(g->arena, "%s.%d", what, unit);
}

static value leaf(struct units *u, enum storage storage, int64_t at, int64_t elements)
{
    return g_leaf_named(u->out, storage, u->out->scope, type_1d(DT_F32, elements), at);
}

/* Appends a collective or AWAIT on the whole unit at `at`. */
static void append(struct units *u, enum op op, int unit, int64_t at)
{
    union attr attr = {.group = {u->o->ranks}};
    value all = leaf(u, STORAGE_UNIT, at, unit_elements(u, unit));
    graph_add(u->out, op, &attr, 1, &all, NULL);
}

/* This rank's shard of a unit: shard_in is the part of the unit at `at` in STORAGE_UNIT, shard_of
 * is where the rank stores the shard. */
static value shard_in(struct units *u, int unit, int64_t at)
{
    int64_t n = unit_elements(u, unit) / u->o->ranks;
    return leaf(u, STORAGE_UNIT, at + u->o->units.rank * n, n);
}

static value shard_of(struct units *u, enum storage storage, int unit)
{
    int ranks = u->o->ranks;
    return leaf(u, storage, u->o->units.first[unit] / ranks, unit_elements(u, unit) / ranks);
}

/* --- weights ---------------------------------------------------------------------------------- */

static void start_gather(struct units *u)
{
    const struct visit *v = &u->visit[u->started++], *during = &u->visit[u->begun];
    enter(u, "weights", v->unit, v->layer, during->phase);
    g_store(u->out, shard_in(u, v->unit, v->at), shard_of(u, STORAGE_WEIGHTS, v->unit));
    append(u, OP_ALL_GATHER, v->unit, v->at);
}

/* Begins the visits whose first node is `id`. */
static void begin_visits(struct units *u, int id)
{
    int ahead = u->o->overlap != SHARD_NONE;
    for (; u->begun < u->visits && u->visit[u->begun].node == id; u->begun++) {
        const struct visit *v = &u->visit[u->begun];
        while (u->started < u->visits && u->started <= u->begun + ahead) start_gather(u);
        enter(u, "weights", v->unit, v->layer, v->phase);
        append(u, OP_AWAIT, v->unit, v->at);
        u->now[v->unit] = u->begun;
    }
}

/* Sets the map of a value of a unit to the value in the latest visit, and appends its nodes if that
 * visit has not read it yet. */
static void read_weight(struct units *u, value old, enum phase phase)
{
    const struct node *n = graph_producer(u->in, old);
    int unit = u->unit_of[old.i] - 1, now = u->now[unit];
    if (u->read_in[old.i] == 1 + now) return;
    if (n->op != OP_LEAF) read_weight(u, n->in[0], phase);
    pass_inherit_place(u->out, n);
    u->out->phase = phase;
    u->read_in[old.i] = 1 + now;
    if (n->op != OP_LEAF) {
        u->map[old.i] =
            graph_add(u->out, n->op, &n->attr, 1, &u->map[n->in[0].i], graph_type(u->in, old));
        return;
    }
    int64_t at = u->visit[now].at + n->attr.leaf.offset - u->o->units.first[unit];
    u->map[old.i] = g_leaf_named(u->out, STORAGE_UNIT, n->scope, *graph_type(u->in, old), at);
}

/* --- gradients -------------------------------------------------------------------------------- */

static void store_zeros(struct units *u, int64_t at, int64_t elements)
{
    if (elements)
        g_store(u->out, leaf(u, STORAGE_UNIT, at, elements),
                g_fill(u->out, type_1d(DT_F32, elements), 0));
}

/* Awaits the sum that was started, if any, and stores this rank's shard of the sum, or adds it to
 * the gradients of earlier micro-steps. */
static void take_sum(struct units *u)
{
    int unit = u->awaited;
    if (unit < 0) return;
    u->awaited = -1;
    enter(u, "gradients", unit, u->sum[unit].layer, PHASE_BACKWARD);
    append(u, OP_AWAIT, unit, u->sum[unit].at);
    value sum = shard_in(u, unit, u->sum[unit].at), own = shard_of(u, STORAGE_GRADIENTS, unit);
    if (u->o->units.accumulate)
        g_accumulate(u->out, own, sum);
    else
        g_store(u->out, own, sum);
}

static void start_sum(struct units *u, int unit)
{
    struct sum *s = &u->sum[unit];
    take_sum(u);
    enter(u, "gradients", unit, s->layer, PHASE_BACKWARD);
    store_zeros(u, s->end, s->at + unit_elements(u, unit) - s->end);
    append(u, OP_REDUCE_SCATTER, unit, s->at);
    u->awaited = unit;
    if (u->o->overlap == SHARD_NONE) take_sum(u);
}

static void write_gradient(struct units *u, int id)
{
    const struct node *n = &u->in->node[id], *from = graph_producer(u->in, n->in[0]);
    const struct type *t = graph_type(u->in, from->out[0]);
    int unit = unit_at(u, from->attr.leaf.offset);
    struct sum *s = &u->sum[unit];
    if (s->at < 0) s->at = new_place(u, unit);
    int64_t first = s->at + from->attr.leaf.offset - u->o->units.first[unit];
    pass_inherit_place(u->out, n);
    g_store(u->out, g_leaf_named(u->out, STORAGE_UNIT, n->scope, *t, first), u->map[n->in[1].i]);
    store_zeros(u, first + type_elements(t), range_elements(t) - type_elements(t));
    s->layer = graph_producer(u->in, n->in[1])->layer;
    s->left -= range_elements(t);
    s->end = max_i64(s->end, first + range_elements(t));
    if (!s->left) start_sum(u, unit);
}

enum status pass_units(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct arena *a = out->arena;
    struct units u = {.in = in, .out = out, .o = o, .awaited = -1};
    u.map = ARENA_NEW(a, value, in->values);
    u.unit_of = ARENA_NEW(a, int, in->values);
    u.read_in = ARENA_NEW(a, int, in->values);
    u.now = ARENA_NEW(a, int, o->units.n);
    u.writer = ARENA_NEW(a, int, in->nodes);
    u.next = ARENA_NEW(a, int, in->nodes);
    u.visit = ARENA_NEW(a, struct visit, in->nodes * MAX_IN);
    u.sum = ARENA_NEW(a, struct sum, o->units.n);
    find_weights(&u);
    find_visits(&u);
    find_gradients(&u);
    for (int id = 0; id < in->nodes; id++) {
        const struct node *n = &in->node[id];
        if (is_of_unit(&u, n) || pass_is_leaf_of(n, STORAGE_GRADIENTS) ||
            pass_writes_gradient(in, n))
            continue;
        begin_visits(&u, id);
        for (int i = 0; i < n->n_in; i++)
            if (u.unit_of[n->in[i].i]) read_weight(&u, n->in[i], n->phase);
        pass_copy_node(in, id, out, u.map);
        for (int w = u.writer[id]; w; w = u.next[w]) write_gradient(&u, w);
    }
    take_sum(&u);
    pass_finish(in, out, u.map);
    return graph_status(out);
}
