/* Sets the numeric properties that types leave open: whether a matmul of f32 operands may round
 * them to TF32 (10 bits of mantissa), whether matmuls and attention must give the same bits in
 * every run, and whether kernels of a single compute capability are excluded. All are attributes,
 * so a printed graph shows them and a kernel's `fits` may check them. Runs after `precision`, which
 * decides what is f32. */
#include "pass/pass.h"

static void mark(const struct graph *in, struct node *n, const struct pass_options *o)
{
    bool tf32 = o->tf32 && n->n_in && graph_type(in, n->in[0])->dtype == DT_F32;
    switch (n->op) {
    case OP_MATMUL:
        n->attr.matmul.tf32 = tf32;
        n->attr.matmul.deterministic = o->deterministic;
        n->attr.matmul.portable = o->portable;
        break;
    case OP_LINEAR:
        n->attr.linear.tf32 = tf32;
        n->attr.linear.deterministic = o->deterministic;
        n->attr.linear.portable = o->portable;
        break;
    case OP_ATTENTION:
    case OP_ATTENTION_GRAD:
        n->attr.attention.tf32 = tf32;
        n->attr.attention.deterministic = o->deterministic;
        n->attr.attention.portable = o->portable;
        break;
    default:
        break;
    }
}

enum status pass_numerics(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        struct node n = in->node[id];
        mark(in, &n, o);
        value first = graph_copy(out, in, &n, map);
        for (int i = 0; i < n.n_out; i++) map[n.out[i].i] = graph_out(first, i);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}
