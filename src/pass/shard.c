/* Sums the gradients over the ranks (Li et al., "PyTorch Distributed", VLDB 2020, section 3.2).
 *
 * A gradient is written to its range as soon as it is computed, instead of at the end. Then comes
 * the collective of its bucket, which works beside the rest of the backward pass; at the end the
 * graph awaits all of them. Every rank has the same graph, so collectives meet in one order. */
#include "graph/build.h"
#include "pass/pass.h"

#include <stdlib.h>

struct range {
    int64_t first, end; /* elements of STORAGE_GRADIENTS */
};

struct shard {
    const struct graph *in;
    struct graph *out;
    const struct pass_options *o;
    value *map;
    int *writer, *next;    /* of node i: the first node that writes its output; the one after i */
    struct range *bucket;  /* written since the last collective */
    struct range *started; /* collectives that are not awaited yet */
    int in_bucket, starts, buckets;
    const char *scope; /* of the parameter that was written last */
};

static bool writes_gradient(const struct graph *g, const struct node *n)
{
    if (op_writes(n->op) == 0) return false;
    const struct node *leaf = graph_producer(g, n->in[0]);
    return leaf->op == OP_LEAF && leaf->attr.leaf.storage == STORAGE_GRADIENTS;
}

/* Chains each node that writes a gradient to the node that computes it, in their order. */
static void find_writers(struct shard *s)
{
    for (int id = s->in->nodes - 1; id >= 0; id--) {
        const struct node *n = &s->in->node[id];
        if (!writes_gradient(s->in, n)) continue;
        int from = s->in->info[n->in[1].i].producer;
        s->next[id] = s->writer[from];
        s->writer[from] = id;
    }
}

/* A collective or AWAIT on a range; each needs a leaf of its own, since the one before wrote it. */
static void append(struct shard *s, enum op op, const struct range *r, const char *name)
{
    struct graph *g = s->out;
    union attr attr = {.group = {s->o->ranks}};
    g->phase = PHASE_BACKWARD;
    g->layer = -1;
    g->region = 0;
    g->numerics = (struct numerics){0};
    value leaf =
        g_leaf_named(g, STORAGE_GRADIENTS, name, type_1d(DT_F32, r->end - r->first), r->first);
    g->scope = name;
    graph_add(g, op, &attr, 1, &leaf, NULL);
}

static int by_first(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Neighbours in memory become one range; returns the number of ranges. */
static int merge(struct range *r, int n)
{
    int kept = 0;
    qsort(r, (size_t)n, sizeof *r, by_first);
    for (int i = 0; i < n; i++) {
        if (kept && r[kept - 1].end == r[i].first)
            r[kept - 1].end = r[i].end;
        else
            r[kept++] = r[i];
    }
    return kept;
}

static void start_bucket(struct shard *s)
{
    bool named = s->o->overlap == SHARD_BUCKET || s->o->overlap == SHARD_FLAT;
    const char *name = named ? arena_printf(s->out->arena, "bucket.%d", s->buckets) : s->scope;
    int n = merge(s->bucket, s->in_bucket);
    for (int i = 0; i < n; i++) {
        append(s, OP_ALL_REDUCE, &s->bucket[i], name);
        s->started[s->starts++] = s->bucket[i];
    }
    s->buckets += n > 0;
    s->in_bucket = 0;
}

static void await_all(struct shard *s)
{
    for (int i = 0; i < s->starts; i++) append(s, OP_AWAIT, &s->started[i], "await");
    s->starts = 0;
}

static bool bucket_is_full(const struct shard *s)
{
    int64_t elements = 0;
    for (int i = 0; i < s->in_bucket; i++) elements += s->bucket[i].end - s->bucket[i].first;
    return elements * dtype_size(DT_F32) >= s->o->bucket_bytes;
}

static void write_gradient(struct shard *s, int id)
{
    const struct node *n = &s->in->node[id], *leaf = graph_producer(s->in, n->in[0]);
    int64_t first = leaf->attr.leaf.offset;
    pass_keep(s->in, s->in->info[n->in[0].i].producer, s->out, s->map);
    pass_keep(s->in, id, s->out, s->map);
    s->bucket[s->in_bucket++] =
        (struct range){first, first + range_elements(graph_type(s->in, leaf->out[0]))};
    s->scope = n->scope;
    bool now =
        s->o->overlap == SHARD_PARAMETER || (s->o->overlap == SHARD_BUCKET && bucket_is_full(s));
    if (now) start_bucket(s);
}

/* After the backward pass, each parameter on its own. */
static void sum_one_by_one(struct shard *s)
{
    int n = s->in_bucket;
    struct range *all = s->bucket;
    for (int i = 0; i < n; i++) {
        append(s, OP_ALL_REDUCE, &all[i], "reduce");
        s->started[s->starts++] = all[i];
        await_all(s);
    }
    s->in_bucket = 0;
}

static bool is_gradient_leaf(const struct node *n)
{
    return n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_GRADIENTS;
}

enum status pass_shard(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct arena *a = out->arena;
    struct shard s = {.in = in, .out = out, .o = o, .map = ARENA_NEW(a, value, in->values)};
    s.writer = ARENA_NEW(a, int, in->nodes);
    s.next = ARENA_NEW(a, int, in->nodes);
    s.bucket = ARENA_NEW(a, struct range, in->nodes);
    s.started = ARENA_NEW(a, struct range, in->nodes);
    bool sums = o->ranks > 1;
    if (sums) find_writers(&s);
    for (int id = 0; id < in->nodes; id++) {
        const struct node *n = &in->node[id];
        if (sums && (is_gradient_leaf(n) || writes_gradient(in, n))) continue;
        pass_keep(in, id, out, s.map);
        for (int w = s.writer[id]; w; w = s.next[w]) write_gradient(&s, w);
    }
    if (o->overlap == SHARD_NONE) sum_one_by_one(&s);
    if (s.in_bucket) start_bucket(&s);
    await_all(&s);
    pass_finish(in, out, s.map);
    return graph_status(out);
}
