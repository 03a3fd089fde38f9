/* Operators that write state: stores, accumulation, the optimizer. */
#include "graph/build.h"
#include "graph/op_rules.h"

/* state, x -> state */
enum status shape_state(struct node *n, const struct type *in, const struct type *given,
                        struct type *out)
{
    char a[TYPE_TEXT], b[TYPE_TEXT];
    if (!type_same(&in[0], &in[1]))
        return fail(ST_USAGE, "%s does not fit into %s", type_text(a, &in[1]),
                    type_text(b, &in[0]));
    return shape_same(n, in, given, out);
}

/* w, m, v, g, lr (1), 1 - beta1^t (1), 1 - beta2^t (1), clip coefficient (1) -> w, m, v */
enum status shape_adamw(struct node *n, const struct type *in, const struct type *given,
                        struct type *out)
{
    (void)given;
    for (int i = 1; i < 4; i++)
        if (!type_same(&in[i], &in[0]))
            return fail(ST_USAGE, "weights, moments and gradients differ in shape");
    for (int i = 4; i < 8; i++)
        if (type_elements(&in[i]) != 1) return fail(ST_USAGE, "the scalars need one element");
    for (int i = 0; i < 3; i++) out[i] = in[i];
    n->n_out = 3;
    return ST_OK;
}

/* AdamW (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2), epsilon outside the root. */
void expand_adamw(struct graph *g, const struct node *n, const value *in, value *out)
{
    value w = in[0], lr = in[4], bias1 = in[5], bias2 = in[6];
    value d = g_mul(g, in[3], in[7]);
    const struct type t = *graph_type(g, w);
    int64_t decayed = n->attr.adamw.decay_elements, N = type_elements(&t);
    double b1 = n->attr.adamw.beta1, b2 = n->attr.adamw.beta2;
    if (decayed > 0) {
        value shrink = g_mul(g, w, g_scale(g, lr, -n->attr.adamw.weight_decay));
        if (decayed < N) {
            value row = g_reshape(g, shrink, type_2d(t.dtype, 1, N));
            shrink = g_reshape(g, g_column_mask(g, row, decayed, 0), t);
        }
        w = g_add(g, w, shrink);
    }
    value m = g_add(g, g_scale(g, in[1], b1), g_scale(g, d, 1 - b1));
    value v = g_add(g, g_scale(g, in[2], b2), g_scale(g, g_mul(g, d, d), 1 - b2));
    value root = g_div(g, g_sqrt(g, v), g_sqrt(g, bias2));
    value step = g_div(g, m, g_offset(g, root, n->attr.adamw.eps));
    w = g_sub(g, w, g_mul(g, step, g_div(g, lr, bias1)));
    out[0] = g_store(g, in[0], w);
    out[1] = g_store(g, in[1], m);
    out[2] = g_store(g, in[2], v);
}

/* w, m, v, copy, g, and the scalars as above -> w, m, v, copy: the new weights once more in bf16 */
enum status shape_adamw_copy(struct node *n, const struct type *in, const struct type *given,
                             struct type *out)
{
    const struct type plain[] = {in[0], in[1], in[2], in[4], in[5], in[6], in[7], in[8]};
    if (in[3].dtype != DT_BF16 || !type_same_shape(&in[3], &in[0]))
        return fail(ST_USAGE, "the copy is to be bf16, of the weights' shape");
    TRY(shape_adamw(n, plain, given, out));
    out[3] = in[3];
    n->n_out = 4;
    return ST_OK;
}

void expand_adamw_copy(struct graph *g, const struct node *n, const value *in, value *out)
{
    value plain[] = {in[0], in[1], in[2], in[4], in[5], in[6], in[7], in[8]};
    value w = graph_add(g, OP_ADAMW, &n->attr, 8, plain, NULL);
    for (int i = 0; i < 3; i++) out[i] = graph_out(w, i);
    out[3] = g_store(g, in[3], g_cast(g, out[0], DT_BF16));
}

/* The old state is not read. */
struct cost cost_store(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    c.bytes -= (double)type_bytes(&in[0]);
    return c;
}

/* A copy is only written. */
struct cost cost_adamw(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    if (n->op == OP_ADAMW_COPY) c.bytes -= (double)type_bytes(&in[3]);
    c.flops = 14.0 * (double)type_elements(&in[0]);
    return c;
}

void grad_sum_squares(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_scale(g, g_mul(g, n->in[0], dout[0]), 2);
}

void expand_sum_squares(struct graph *g, const struct node *n, const value *in, value *out)
{
    (void)n;
    value square = g_mul(g, in[0], in[0]);
    const struct type t = *graph_type(g, square);
    out[0] = g_sum_row(g, g_reshape(g, square, type_1d(t.dtype, type_elements(&t))));
}

struct cost cost_sum_squares(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    c.flops = 2.0 * (double)type_elements(&in[0]);
    return c;
}
