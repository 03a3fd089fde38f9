/* Replaces operators above the rung by their expansion, recursively. Runs before differentiation,
 * so the gradient of slow attention, the expansion of attention, is built from its parts. */
#include "pass/pass.h"

static bool keeps(enum op op, const struct pass_options *o)
{
    static const enum pass_rung first[] = {
        [LEVEL_PRIMITIVE] = RUNG_PRIMITIVE, [LEVEL_LAYER] = RUNG_OP, [LEVEL_FUSED] = RUNG_FULL};
    if (!op_def(op)->expand) return true;
    if (op == OP_ATTENTION || op == OP_ATTENTION_GRAD) return o->flash;
    return o->rung >= first[op_def(op)->level];
}

static void expand_node(const struct node *n, struct graph *out, value *map)
{
    value from[MAX_IN], to[MAX_OUT] = {{0}};
    for (int i = 0; i < n->n_in; i++) from[i] = map[n->in[i].i];
    pass_inherit_place(out, n);
    op_def(n->op)->expand(out, n, from, to);
    for (int i = 0; i < n->n_out; i++) map[n->out[i].i] = to[i];
}

static bool expand_once(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    bool any = false;
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        if (keeps(in->node[id].op, o)) {
            pass_copy_node(in, id, out, map);
        } else {
            expand_node(&in->node[id], out, map);
            any = true;
        }
    }
    pass_finish(in, out, map);
    return any;
}

enum status pass_expand(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct graph now = *in;
    while (expand_once(&now, out, o)) { /* an expansion may have operators that must be expanded */
        TRY(graph_status(out));
        now = *out;
        graph_init(out, in->arena);
    }
    return graph_status(out);
}
