/* Sums the gradients over the ranks (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).
 *
 * A gradient is written to its range as soon as it is computed, instead of at the end of the
 * backward pass. As soon as a whole bucket of the range is written, the collective of the bucket
 * starts and runs during the rest of the backward pass; at the end the graph awaits all
 * collectives. Buckets are parts of the range of equal size, except the last, and do not depend on
 * the order of the gradients, so the update knows the buckets, too. All ranks have the same graph,
 * so they start their collectives in the same order.
 *
 * Sums in bf16 have a range of their own (STORAGE_REDUCED), which the update reads. A gradient that
 * is not accumulated is stored only in this range; if nothing else reads the gradient, its matmul
 * writes bf16 directly. A gradient that is accumulated over micro-steps stays in f32, and each
 * bucket is rounded once, before it is summed. */
#include "graph/build.h"
#include "pass/pass.h"

struct range {
    int64_t first, end; /* elements of STORAGE_GRADIENTS */
};

struct shard {
    const struct graph *in;
    struct graph *out;
    const struct pass_options *o;
    value *map;
    /* writer[i]: the first node that writes an output of node i to a gradient; next[w]: the node
     * after w that does so; 0: none. */
    int *writer, *next;
    bool accumulates;      /* gradients are added to those of earlier micro-steps */
    bool *narrow;          /* narrow[i]: node i is a matmul that writes its gradient in bf16 */
    int64_t elements;      /* of the range of all gradients */
    int64_t *left;         /* left[k]: the elements of bucket k that are not written yet */
    struct range *started; /* collectives that are not awaited yet */
    int starts;
};

/* Sets `writer` and `next`, in the order of the nodes. */
static void find_writers(struct shard *s)
{
    for (int id = s->in->nodes - 1; id >= 0; id--) {
        const struct node *n = &s->in->node[id];
        if (!pass_writes_gradient(s->in, n)) continue;
        int from = s->in->info[n->in[1].i].producer;
        s->next[id] = s->writer[from];
        s->writer[from] = id;
    }
}

static struct range range_of(const struct shard *s, int writer)
{
    const struct node *leaf = graph_producer(s->in, s->in->node[writer].in[0]);
    int64_t first = leaf->attr.leaf.offset;
    return (struct range){first, first + range_elements(graph_type(s->in, leaf->out[0]))};
}

static void find_buckets(struct shard *s, struct arena *a)
{
    for (int id = 0; id < s->in->nodes; id++)
        if (pass_writes_gradient(s->in, &s->in->node[id]))
            s->elements = max_i64(s->elements, range_of(s, id).end);
    int64_t size = s->o->bucket_elements, buckets = ceil_div(s->elements, size);
    s->left = ARENA_NEW(a, int64_t, buckets);
    for (int64_t k = 0; k < buckets; k++) s->left[k] = min_i64(size, s->elements - k * size);
}

static value range_leaf(struct shard *s, const struct range *r, const char *name, enum dtype dtype)
{
    enum storage storage = dtype == DT_BF16 ? STORAGE_REDUCED : STORAGE_GRADIENTS;
    return g_leaf_named(s->out, storage, name, type_1d(dtype, r->end - r->first), r->first);
}

static void enter(struct shard *s, const char *name)
{
    struct graph *g = s->out;
    g->phase = PHASE_BACKWARD;
    g->layer = -1;
    g->region = 0;
    g->numerics = (struct numerics){0};
    g->scope = name;
}

/* Appends a collective or AWAIT on a range. Each node needs a leaf of its own, since the node
 * before has written its leaf. */
static void append(struct shard *s, enum op op, const struct range *r, const char *name)
{
    union attr attr = {.group = {s->o->ranks}};
    enter(s, name);
    value leaf = range_leaf(s, r, name, s->o->reduce);
    graph_add(s->out, op, &attr, 1, &leaf, NULL);
}

/* Rounds a range of accumulated gradients to bf16. */
static void round_range(struct shard *s, const struct range *r, const char *name)
{
    enter(s, name);
    value sum = range_leaf(s, r, name, DT_F32);
    g_store(s->out, range_leaf(s, r, name, DT_BF16), g_cast(s->out, sum, DT_BF16));
}

static void start(struct shard *s, const struct range *r, const char *name)
{
    if (s->accumulates && s->o->reduce == DT_BF16) round_range(s, r, name);
    append(s, s->o->zero ? OP_REDUCE_SCATTER : OP_ALL_REDUCE, r, name);
    s->started[s->starts++] = *r;
}

static void await_all(struct shard *s)
{
    for (int i = 0; i < s->starts; i++) append(s, OP_AWAIT, &s->started[i], "await");
    s->starts = 0;
}

/* The range `r` was written: starts the collectives of buckets that are now written completely. */
static void fill_buckets(struct shard *s, const struct range *r)
{
    int64_t size = s->o->bucket_elements;
    for (int64_t k = r->first / size; k * size < r->end; k++) {
        struct range bucket = {k * size, min_i64((k + 1) * size, s->elements)};
        s->left[k] -= min_i64(r->end, bucket.end) - max_i64(r->first, bucket.first);
        if (s->left[k] == 0)
            start(s, &bucket, arena_printf(s->out->arena, "bucket.%lld", (long long)k));
    }
}

/* Stores a gradient that is not accumulated in bf16. */
static void store_reduced(struct shard *s, int id)
{
    const struct node *n = &s->in->node[id];
    struct type t = *graph_type(s->in, n->in[0]);
    value x = s->map[n->in[1].i];
    t.dtype = DT_BF16;
    pass_inherit_place(s->out, n);
    if (graph_type(s->out, x)->dtype != DT_BF16) x = g_cast(s->out, x, DT_BF16);
    g_store(s->out, g_leaf_named(s->out, STORAGE_REDUCED, n->scope, t, range_of(s, id).first), x);
}

static void write_gradient(struct shard *s, int id)
{
    const struct node *n = &s->in->node[id];
    struct range r = range_of(s, id);
    if (s->o->reduce == DT_BF16 && n->op == OP_STORE) {
        store_reduced(s, id);
    } else {
        pass_copy_node(s->in, s->in->info[n->in[0].i].producer, s->out, s->map);
        pass_copy_node(s->in, id, s->out, s->map);
    }
    if (s->o->overlap == SHARD_PARAMETER) start(s, &r, n->scope);
    if (s->o->overlap == SHARD_BUCKET) fill_buckets(s, &r);
}

/* Sums the gradients after the backward pass, one parameter after another. */
static void sum_one_by_one(struct shard *s)
{
    for (int id = 0; id < s->in->nodes; id++) {
        if (!pass_writes_gradient(s->in, &s->in->node[id])) continue;
        struct range r = range_of(s, id);
        start(s, &r, s->in->node[id].scope);
        await_all(s);
    }
}

/* Marks matmuls of bf16 whose result is only stored as a gradient and not read by other nodes. */
static void find_narrow(struct shard *s)
{
    const struct graph *g = s->in;
    int *reads = ARENA_NEW(s->out->arena, int, g->values);
    for (int id = 0; id < g->nodes; id++)
        for (int i = 0; i < g->node[id].n_in; i++) reads[g->node[id].in[i].i]++;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (!pass_writes_gradient(g, n)) continue;
        const struct node *from = graph_producer(g, n->in[1]);
        s->accumulates |= n->op == OP_ACCUMULATE;
        s->narrow[from - g->node] = n->op == OP_STORE && from->op == OP_MATMUL &&
                                    graph_type(g, from->in[0])->dtype == DT_BF16 &&
                                    reads[n->in[1].i] == 1;
    }
}

static void keep_narrow(struct shard *s, int id)
{
    const struct node *n = &s->in->node[id];
    struct type t = *graph_type(s->in, n->out[0]);
    value in[MAX_IN];
    for (int i = 0; i < n->n_in; i++) in[i] = s->map[n->in[i].i];
    t.dtype = DT_BF16;
    pass_inherit_place(s->out, n);
    s->map[n->out[0].i] = graph_add(s->out, n->op, &n->attr, n->n_in, in, &t);
}

enum status pass_shard(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    if (o->units.n) return pass_units(in, out, o);
    struct arena *a = out->arena;
    struct shard s = {.in = in, .out = out, .o = o, .map = ARENA_NEW(a, value, in->values)};
    s.writer = ARENA_NEW(a, int, in->nodes);
    s.next = ARENA_NEW(a, int, in->nodes);
    s.started = ARENA_NEW(a, struct range, in->nodes);
    s.narrow = ARENA_NEW(a, bool, in->nodes);
    bool sums = o->ranks > 1;
    if (sums) find_writers(&s);
    if (sums && o->reduce == DT_BF16) find_narrow(&s);
    if (sums && o->overlap == SHARD_BUCKET) find_buckets(&s, a);
    for (int id = 0; id < in->nodes; id++) {
        const struct node *n = &in->node[id];
        if (sums && (pass_is_leaf_of(n, STORAGE_GRADIENTS) || pass_writes_gradient(in, n)))
            continue;
        if (s.narrow[id])
            keep_narrow(&s, id);
        else
            pass_copy_node(in, id, out, s.map);
        for (int w = s.writer[id]; w; w = s.next[w]) write_gradient(&s, w);
    }
    if (sums && o->overlap == SHARD_NONE) sum_one_by_one(&s);
    await_all(&s);
    pass_finish(in, out, s.map);
    return graph_status(out);
}
