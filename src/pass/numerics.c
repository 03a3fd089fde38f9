/* Sets node.numerics: TF32 (10 bits of mantissa) for f32 operands of matmuls, the same bits in
 * every run, no kernels of a single compute capability. These options are data of the node, so a
 * printed graph shows them and a kernel's `fits` can read them. The pass runs after `precision`,
 * which decides which operands are f32. */
#include "pass/pass.h"

enum status pass_numerics(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        struct node n = in->node[id];
        if (op_def(n.op)->flags & OP_NUMERICS) {
            n.numerics = o->numerics;
            n.numerics.tf32 &= graph_type(in, n.in[0])->dtype == DT_F32;
        }
        value first = graph_copy(out, in, &n, map);
        for (int i = 0; i < n.n_out; i++) map[n.out[i].i] = graph_out(first, i);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}
