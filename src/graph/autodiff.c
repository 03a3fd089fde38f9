/* Reverse-mode differentiation: one sweep from the loss to the parameters. Adjoints are ordinary
 * values of the graph; if a value has several uses, ADD nodes sum their adjoints. */
#include "graph/build.h"

struct sweep {
    struct graph *g;
    bool *needed;   /* per value: whether the value depends on a value of `wrt` */
    value *adjoint; /* per value: the sum of the adjoints from its uses so far */
};

static void mark_needed(struct sweep *s, int n, const value *wrt)
{
    for (int i = 0; i < n; i++) s->needed[wrt[i].i] = true;
    for (int i = 0; i < s->g->nodes; i++) {
        const struct node *node = &s->g->node[i];
        bool any = false;
        for (int k = 0; k < node->n_in; k++) any |= s->needed[node->in[k].i];
        for (int k = 0; any && k < node->n_out; k++) s->needed[node->out[k].i] = true;
    }
}

static void add_adjoint(struct sweep *s, value at, value adjoint)
{
    value *to = &s->adjoint[at.i];
    *to = to->i ? g_add(s->g, *to, adjoint) : adjoint;
}

static enum status differentiate_node(struct sweep *s, int id)
{
    struct graph *g = s->g;
    const struct node n = g->node[id]; /* a copy, because appending may move the array */
    value dout[MAX_OUT], din[MAX_IN] = {{0}};
    bool any = false, later = false, needed = false;
    for (int i = 0; i < n.n_out; i++) {
        dout[i] = s->adjoint[n.out[i].i];
        any |= dout[i].i != 0;
        later |= i > 0 && dout[i].i;
    }
    for (int i = 0; i < n.n_in; i++) needed |= s->needed[n.in[i].i];
    if (!any || !needed) return ST_OK;
    if (!op_def(n.op)->grad)
        return fail(ST_UNSUPPORTED, "%s %s has no gradient", op_def(n.op)->name, n.scope);
    if (later && !(op_def(n.op)->flags & OP_GRAD_ALL)) /* the rule would ignore that adjoint */
        return fail(ST_UNSUPPORTED, "%s %s: only the first output has a gradient",
                    op_def(n.op)->name, n.scope);
    g->scope = n.scope;
    g->layer = n.layer;
    g->numerics = n.numerics;
    op_def(n.op)->grad(g, &n, dout, din);
    for (int i = 0; i < n.n_in; i++)
        if (din[i].i && s->needed[n.in[i].i]) add_adjoint(s, n.in[i], din[i]);
    return graph_status(g);
}

enum status graph_differentiate(struct graph *g, value loss, value dloss, int n, const value *wrt,
                                value *ret_gradients)
{
    TRY(graph_status(g));
    int values = g->values, nodes = g->nodes;
    struct sweep s = {.g = g,
                      .needed = ARENA_NEW(g->arena, bool, values),
                      .adjoint = ARENA_NEW(g->arena, value, values)};
    enum phase phase = g->phase;
    struct numerics numerics = g->numerics;
    struct graph_scope scope = {g->scope, g->layer};
    mark_needed(&s, n, wrt);
    s.adjoint[loss.i] = dloss;
    g->phase = PHASE_BACKWARD;
    for (int id = nodes - 1; id >= 0; id--) TRY(differentiate_node(&s, id));
    g->phase = phase;
    g->numerics = numerics;
    graph_leave(g, scope);
    for (int i = 0; i < n; i++) {
        ret_gradients[i] = s.adjoint[wrt[i].i];
        if (!ret_gradients[i].i)
            return fail(ST_USAGE, "the loss does not depend on %s",
                        graph_producer(g, wrt[i])->scope);
    }
    return ST_OK;
}
