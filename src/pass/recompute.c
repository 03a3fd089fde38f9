/* Recomputes values in the backward pass instead of keeping them (Chen et al., arXiv 1604.06174).
 *
 * The pass `regions` marks regions in the graph that the model built: a GELU (or SwiGLU) and the
 * matmul that reads its result, or a number of consecutive blocks. Values of a region that nodes
 * outside of the region read in the forward pass are kept. Every other value of a region that the
 * backward pass reads is recomputed from the kept values, once, just before its first use, so only
 * kept values outlive the forward pass. The same operators on the same numbers give the same bits;
 * dropout generates its masks from the same counters. */
#include "pass/pass.h"

/* The region of `n`: a GELU or SwiGLU starts a region, and the nodes that read its result belong to
 * the region. Casts that `precision` later inserts between these nodes get the same region. */
static int region_of_gelu(const struct node *n, int *of_value, int *count)
{
    if (n->op == OP_GELU || n->op == OP_SWIGLU) return of_value[n->out[0].i] = ++*count;
    for (int i = 0; i < n->n_in; i++)
        if (of_value[n->in[i].i]) return of_value[n->in[i].i];
    return 0;
}

enum status pass_regions(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    value *map = ARENA_NEW(out->arena, value, in->values);
    int *of_value = ARENA_NEW(out->arena, int, in->values), count = 0;
    int blocks_per_region = o->region_blocks > 1 ? o->region_blocks : 1;
    for (int id = 0; id < in->nodes; id++) {
        struct node n = in->node[id];
        if (o->region == REGION_GELU) n.region = region_of_gelu(&n, of_value, &count);
        if (o->region == REGION_BLOCK && n.layer >= 0) n.region = 1 + n.layer / blocks_per_region;
        value first = graph_copy(out, in, &n, map);
        for (int i = 0; i < n.n_out; i++) map[n.out[i].i] = graph_out(first, i);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}

struct recompute {
    const struct graph *in;
    struct graph *out;
    value *map;        /* per value of `in`: its new value */
    value *recomputed; /* per value of `in`: its recomputed copy, created on first use */
    bool *kept;        /* per value of `in` of a region: it is kept for the backward pass */
};

static int region_of(const struct graph *g, value v)
{
    const struct node *n = graph_producer(g, v);
    return n->op == OP_LEAF || n->phase != PHASE_FORWARD ? 0 : n->region;
}

static void find_kept(const struct recompute *r)
{
    const struct graph *g = r->in;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->phase != PHASE_FORWARD) continue;
        for (int i = 0; i < n->n_in; i++)
            r->kept[n->in[i].i] |= n->region != region_of(g, n->in[i]);
    }
    for (int i = 0; i < g->outputs; i++) r->kept[g->output[i].v.i] = true;
}

static void append(struct recompute *r, const struct node *n, value *map);

/* The value that replaces `old` for a node of the backward pass. */
static value recomputed(struct recompute *r, value old)
{
    const struct graph *g = r->in;
    const struct node *n = graph_producer(g, old);
    if (!region_of(g, old) || r->kept[old.i]) return r->map[old.i];
    if (r->recomputed[old.i].i) return r->recomputed[old.i];
    BUG_IF(op_writes(n->op), "%s %s: state cannot be recomputed", op_def(n->op)->name, n->scope);
    append(r, n, r->recomputed);
    return r->recomputed[old.i];
}

/* Appends a copy of `n` on recomputed inputs to the backward pass and sets `map` for its outputs. A
 * copy of a forward node has ".recompute" at the end of its scope. */
static void append(struct recompute *r, const struct node *n, value *map)
{
    value from[MAX_IN];
    for (int i = 0; i < n->n_in; i++) from[i] = recomputed(r, n->in[i]);
    pass_inherit_place(r->out, n);
    r->out->phase = PHASE_BACKWARD;
    if (n->phase == PHASE_FORWARD)
        r->out->scope = arena_printf(r->out->arena, "%s.recompute", n->scope);
    value first = graph_add(r->out, n->op, &n->attr, n->n_in, from, graph_type(r->in, n->out[0]));
    for (int i = 0; i < n->n_out; i++) map[n->out[i].i] = graph_out(first, i);
}

enum status pass_recompute(const struct graph *in, struct graph *out, const struct pass_options *)
{
    /* needs no options: `regions` has already marked the nodes */
    struct recompute r = {.in = in, .out = out, .map = ARENA_NEW(out->arena, value, in->values)};
    r.recomputed = ARENA_NEW(out->arena, value, in->values);
    r.kept = ARENA_NEW(out->arena, bool, in->values);
    find_kept(&r);
    for (int id = 0; id < in->nodes; id++) {
        if (in->node[id].phase == PHASE_BACKWARD)
            append(&r, &in->node[id], r.map);
        else
            pass_copy_node(in, id, out, r.map);
    }
    pass_finish(in, out, r.map);
    return graph_status(out);
}
