/* SiLU (Elfwing et al., arXiv 1702.03118) and SwiGLU (Shazeer, arXiv 2002.05202). */
#include "graph/build.h"
#include "graph/op_rules.h"

void grad_silu(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_silu_grad(g, dout[0], n->in[0]);
}

void expand_silu(struct graph *g, const struct node *, const value *in, value *out)
{
    out[0] = g_mul(g, in[0], g_sigmoid(g, in[0]));
}

/* dy, x -> dy s (1 + x (1 - s)) */
void expand_silu_grad(struct graph *g, const struct node *, const value *in, value *out)
{
    value s = g_sigmoid(g, in[1]);
    value rest = g_offset(g, g_scale(g, s, -1), 1);
    value factor = g_offset(g, g_mul(g, in[1], rest), 1);
    out[0] = g_mul(g, in[0], g_mul(g, s, factor));
}

/* gate and up side by side in one tensor (B,T,2F), or gate (...,F) and up (...,F)
 * -> (...,F): silu(gate) times up */
enum status shape_swiglu(struct node *n, const struct type *in, const struct type *,
                         struct type *out)
{
    char t[TYPE_TEXT];
    if (n->n_in == 2 && !type_same(&in[0], &in[1]))
        return fail(ST_USAGE, "gate and up differ in shape");
    if (n->n_in == 1 && type_columns(&in[0]) % 2)
        return fail(ST_USAGE,
                    "%s has an odd number of columns, so it cannot be gate and up side by side",
                    type_text(t, &in[0]));
    out[0] = in[0];
    if (n->n_in == 1) out[0].dim[out[0].rank - 1] /= 2;
    n->n_out = 1;
    return ST_OK;
}

void grad_swiglu(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value in[] = {dout[0], n->in[0], n->in[1]};
    din[0] = graph_add(g, OP_SWIGLU_GRAD, NULL, n->n_in + 1, in, NULL);
    din[1] = graph_out(din[0], 1);
}

/* dy (...,F), inputs of SWIGLU -> the gradient of each of its inputs */
enum status shape_swiglu_grad(struct node *n, const struct type *in, const struct type *given,
                              struct type *out)
{
    struct node gated = {.op = OP_SWIGLU, .n_in = n->n_in - 1};
    struct type y;
    TRY(shape_swiglu(&gated, in + 1, given, &y));
    if (!type_same(&in[0], &y)) return fail(ST_USAGE, "the adjoint and the output differ in shape");
    for (int i = 1; i < n->n_in; i++) out[i - 1] = in[i];
    n->n_out = n->n_in - 1;
    return ST_OK;
}

struct gated {
    value gate, up;
};

static struct gated halves(struct graph *g, int n, const value *in)
{
    if (n == 2) return (struct gated){in[0], in[1]};
    int64_t F = type_columns(graph_type(g, in[0])) / 2;
    value first = g_split(g, in[0], 2, (int64_t[]){F, F});
    return (struct gated){first, graph_out(first, 1)};
}

void expand_swiglu(struct graph *g, const struct node *n, const value *in, value *out)
{
    struct gated x = halves(g, n->n_in, in);
    out[0] = g_mul(g, g_silu(g, x.gate), x.up);
}

void expand_swiglu_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    struct gated x = halves(g, n->n_in - 1, in + 1);
    value d[] = {g_silu_grad(g, g_mul(g, in[0], x.up), x.gate), g_mul(g, in[0], g_silu(g, x.gate))};
    if (n->n_in == 2) {
        out[0] = g_concat(g, 2, d);
    } else {
        out[0] = d[0];
        out[1] = d[1];
    }
}

struct cost cost_swiglu(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 6, &out[0]);
}

struct cost cost_swiglu_grad(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 12, &in[0]);
}
