/* On the rung `full`, matmuls of one input with weights that are adjacent in their range become one
 * matmul with one weight. No data moves: weights (N1,K), (N2,K), ... that are adjacent in memory
 * are one matrix (N1+N2+...,K). The gradient of the weights then becomes one matmul too, and so
 * does the gradient of the input, which was a sum of the results of several matmuls.
 *
 * The pattern is matched at the node that reads the results: CONCAT, which then disappears, or
 * SWIGLU, which also accepts gate and up in one tensor. */
#include "graph/build.h"
#include "pass/pass.h"

#include <string.h>

struct join {
    const struct graph *in;
    struct graph *out;
    value *map;
    int *uses; /* per value of `in`: number of uses */
    /* per node of `in` that is the first matmul of a group: the node that reads the group; else
     * 0 */
    int *joined_at;
    bool *replaced; /* per node of `in`: replaced by a joined matmul */
};

/* True if `v` is the result of a matmul with a transposed weight, and neither `v` nor the weight
 * has another use. */
static bool is_joinable(const struct join *j, value v)
{
    const struct graph *g = j->in;
    const struct node *n = graph_producer(g, v);
    if (n->op != OP_MATMUL || n->attr.matmul.ta || !n->attr.matmul.tb || j->uses[v.i] != 1)
        return false;
    const struct node *w = graph_producer(g, n->in[1]);
    return w->op == OP_LEAF && w->attr.leaf.storage == STORAGE_WEIGHTS && j->uses[n->in[1].i] == 1;
}

/* True if the weight of `b` starts where the weight of `a` ends, and both matmuls have the same
 * input. */
static bool follows(const struct graph *g, const struct node *a, const struct node *b)
{
    const struct node *wa = graph_producer(g, a->in[1]), *wb = graph_producer(g, b->in[1]);
    const struct type *ta = graph_type(g, a->in[1]), *tb = graph_type(g, b->in[1]);
    return a->in[0].i == b->in[0].i && ta->rank == 2 && tb->rank == 2 && ta->dim[1] == tb->dim[1] &&
           wa->attr.leaf.offset + type_elements(ta) == wb->attr.leaf.offset;
}

/* If one matmul can compute all inputs of node `id`, marks the matmuls and weights that it
 * replaces. */
static void match_node(struct join *j, int id)
{
    const struct graph *g = j->in;
    const struct node *n = &g->node[id];
    if ((n->op != OP_CONCAT && n->op != OP_SWIGLU) || n->n_in < 2) return;
    for (int i = 0; i < n->n_in; i++) {
        if (!is_joinable(j, n->in[i])) return;
        if (i && !follows(g, graph_producer(g, n->in[i - 1]), graph_producer(g, n->in[i]))) return;
    }
    for (int i = 0; i < n->n_in; i++) {
        const struct node *matmul = graph_producer(g, n->in[i]);
        j->replaced[matmul - g->node] = j->replaced[g->info[matmul->in[1].i].producer] = true;
    }
    j->joined_at[g->info[n->in[0].i].producer] = id;
}

/* For example "h.0.attn.q_proj" and "h.0.attn.k_proj" -> "h.0.attn.q_proj+k_proj". */
static const char *names_of(const struct join *j, const struct node *n)
{
    const char *names = graph_producer(j->in, n->in[0])->scope;
    for (int i = 1; i < n->n_in; i++) {
        const char *scope = graph_producer(j->in, n->in[i])->scope, *word = strrchr(scope, '.');
        names = arena_printf(j->out->arena, "%s+%s", names, word ? word + 1 : scope);
    }
    return names;
}

/* Appends the matmul that computes the inputs of node `to`, in the place of the first matmul that
 * it replaces. */
static void join(struct join *j, const struct node *to)
{
    const struct graph *g = j->in;
    const struct node *first = graph_producer(g, to->in[0]);
    const char *names = names_of(j, to);
    struct type t = *graph_type(g, first->in[1]);
    for (int i = 1; i < to->n_in; i++)
        t.dim[0] += graph_type(g, graph_producer(g, to->in[i])->in[1])->dim[0];
    pass_inherit_place(j->out, first);
    j->out->scope = names;
    value w = g_leaf(j->out, STORAGE_WEIGHTS, "weight", t,
                     graph_producer(g, first->in[1])->attr.leaf.offset);
    value all = g_matmul(j->out, j->map[first->in[0].i], w, false, true);
    if (to->op == OP_SWIGLU) {
        pass_inherit_place(j->out, to);
        all = g_swiglu(j->out, all, (value){0});
    }
    j->map[to->out[0].i] = all;
}

enum status pass_join(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct join j = {.in = in, .out = out, .map = ARENA_NEW(out->arena, value, in->values)};
    j.uses = ARENA_NEW(out->arena, int, in->values);
    j.joined_at = ARENA_NEW(out->arena, int, in->nodes);
    j.replaced = ARENA_NEW(out->arena, bool, in->nodes);
    for (int id = 0; id < in->nodes; id++)
        for (int i = 0; i < in->node[id].n_in; i++) j.uses[in->node[id].in[i].i]++;
    for (int i = 0; i < in->outputs; i++) j.uses[in->output[i].v.i]++;
    for (int id = 0; o->rung == RUNG_FULL && id < in->nodes; id++) match_node(&j, id);
    for (int id = 0; id < in->nodes; id++) {
        if (j.joined_at[id]) join(&j, &in->node[j.joined_at[id]]);
        bool made = in->node[id].n_out && j.map[in->node[id].out[0].i].i;
        if (!j.replaced[id] && !made) pass_copy_node(in, id, out, j.map);
    }
    pass_finish(in, out, j.map);
    return graph_status(out);
}
