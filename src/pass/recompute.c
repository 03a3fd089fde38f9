/* What the backward pass computes again instead of keeping (Chen et al., arXiv 1604.06174).
 *
 * Regions are marked while the graph is what the model wrote: a GELU (or SwiGLU) and the product that reads it, or some
 * blocks one after the other. What a region hands to nodes outside of it is kept. Every other value of a region that the
 * backward pass reads is computed again, from what is kept, just before its first reader and once; so
 * nothing else of a region outlives the forward pass. The same operators on the same numbers (dropout
 * draws its masks from the same counters) give the same bits. */
#include "pass/pass.h"

/* A GELU or SwiGLU is the first of its region; who reads it belongs to it, and so do the casts in between. */
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
    int at_once = o->again_blocks > 1 ? o->again_blocks : 1;
    for (int id = 0; id < in->nodes; id++) {
        struct node n = in->node[id];
        if (o->again == AGAIN_GELU) n.region = region_of_gelu(&n, of_value, &count);
        if (o->again == AGAIN_BLOCK && n.layer >= 0) n.region = 1 + n.layer / at_once;
        value first = graph_copy(out, in, &n, map);
        for (int i = 0; i < n.n_out; i++) map[n.out[i].i] = graph_out(first, i);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}

struct recompute {
    const struct graph *in;
    struct graph *out;
    value *map;   /* of each old value */
    value *again; /* the same, computed again, once somebody needed it */
    bool *kept;   /* of each old value of a region */
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

/* `old` for a node of the backward pass. What is computed again is marked as what it stands for, but for the phase
 * and a word. */
static value again(struct recompute *r, value old)
{
    const struct graph *g = r->in;
    const struct node *n = graph_producer(g, old);
    if (!region_of(g, old) || r->kept[old.i]) return r->map[old.i];
    if (r->again[old.i].i) return r->again[old.i];
    BUG_IF(op_writes(n->op), "%s %s: state is not computed again", op_def(n->op)->name, n->scope);
    value from[MAX_IN];
    for (int i = 0; i < n->n_in; i++) from[i] = again(r, n->in[i]);
    pass_mark(r->out, n);
    r->out->phase = PHASE_BACKWARD;
    r->out->scope = arena_printf(r->out->arena, "%s.again", n->scope);
    value first = graph_add(r->out, n->op, &n->attr, n->n_in, from, graph_type(g, n->out[0]));
    for (int i = 0; i < n->n_out; i++) r->again[n->out[i].i] = graph_out(first, i);
    return r->again[old.i];
}

static void copy_backward(struct recompute *r, const struct node *n)
{
    value from[MAX_IN];
    for (int i = 0; i < n->n_in; i++) from[i] = again(r, n->in[i]);
    pass_mark(r->out, n);
    value first = graph_add(r->out, n->op, &n->attr, n->n_in, from, graph_type(r->in, n->out[0]));
    for (int i = 0; i < n->n_out; i++) r->map[n->out[i].i] = graph_out(first, i);
}

enum status pass_recompute(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    (void)o; /* regions say it all */
    struct recompute r = {.in = in, .out = out, .map = ARENA_NEW(out->arena, value, in->values)};
    r.again = ARENA_NEW(out->arena, value, in->values);
    r.kept = ARENA_NEW(out->arena, bool, in->values);
    find_kept(&r);
    for (int id = 0; id < in->nodes; id++) {
        if (in->node[id].phase == PHASE_BACKWARD)
            copy_backward(&r, &in->node[id]);
        else
            pass_keep(in, id, out, r.map);
    }
    pass_finish(in, out, r.map);
    return graph_status(out);
}
