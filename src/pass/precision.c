/* The types that arithmetic runs in. Weights, norms, softmax statistics, the loss and all sums are
 * fp32 at every rung. In double precision every float value becomes a double: what gradients are
 * checked against finite differences in. */
#include "pass/pass.h"

enum status pass_precision(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        const struct node *n = &in->node[id];
        if (o->compute == DT_F32) {
            pass_keep(in, id, out, map);
            continue;
        }
        struct type given = in->info[n->out[0].i].type;
        if (given.dtype == DT_F32) given.dtype = o->compute;
        value from[MAX_IN];
        for (int i = 0; i < n->n_in; i++) from[i] = map[n->in[i].i];
        pass_mark(out, n);
        value first = graph_add(out, n->op, &n->attr, n->n_in, from, &given);
        for (int i = 0; i < n->n_out; i++) map[n->out[i].i] = graph_out(first, i);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}
