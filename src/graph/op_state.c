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

/* The inputs are w, `states` tensors and g, all of one shape, then scalars. g may be bf16. */
static enum status check_update(struct node *n, int states, const struct type *in, struct type *out)
{
    int tensors = states + 2;
    for (int i = 1; i < tensors; i++)
        if (!type_same_shape(&in[i], &in[0]) ||
            (in[i].dtype != in[0].dtype && !(i == tensors - 1 && in[i].dtype == DT_BF16)))
            return fail(ST_USAGE, "weights, optimizer state and gradients differ in shape or type");
    for (int i = tensors; i < n->n_in; i++)
        if (type_elements(&in[i]) != 1) return fail(ST_USAGE, "the scalars need one element");
    for (int i = 0; i <= states; i++) out[i] = in[i];
    n->n_out = states + 1;
    return ST_OK;
}

/* ADAMW: w, m, v, g, lr (1), 1 - beta1^t (1), 1 - beta2^t (1), clip coefficient (1) -> w, m, v
 * SGDM: w, v, g, lr (1), clip coefficient (1) -> w, v */
enum status shape_update(struct node *n, const struct type *in, const struct type *,
                         struct type *out)
{
    return check_update(n, op_writes(n->op) - 1, in, out);
}

/* shape_update with a bf16 copy of the weights after the state. The update writes this copy. */
enum status shape_update_copy(struct node *n, const struct type *in, const struct type *,
                              struct type *out)
{
    int states = op_writes(n->op) - 2, copy = states + 1;
    struct type plain[MAX_IN];
    struct node without = {.n_in = n->n_in - 1};
    if (in[copy].dtype != DT_BF16 || !type_same_shape(&in[copy], &in[0]))
        return fail(ST_USAGE, "the copy must be bf16, with the weights' shape");
    for (int i = 0; i < without.n_in; i++) plain[i] = in[i + (i >= copy)];
    TRY(check_update(&without, states, plain, out));
    out[copy] = in[copy];
    n->n_out = states + 2;
    return ST_OK;
}

/* The update without the copy, then a STORE into the copy. */
void expand_update_copy(struct graph *g, const struct node *n, const value *in, value *out)
{
    enum op op = n->op == OP_ADAMW_COPY ? OP_ADAMW : OP_SGDM;
    int copy = op_writes(op);
    value plain[MAX_IN] = {{0}};
    for (int i = 0; i + 1 < n->n_in; i++) plain[i] = in[i + (i >= copy)];
    value w = graph_add(g, op, &n->attr, n->n_in - 1, plain, NULL);
    for (int i = 0; i < copy; i++) out[i] = graph_out(w, i);
    out[copy] = g_store(g, in[copy], g_cast(g, out[0], DT_BF16));
}

/* x in the first decay_elements elements, 0 in all later elements; x is a multiple of the
 * weights. */
static value decayed_part(struct graph *g, value x, int64_t decay_elements)
{
    const struct type t = *graph_type(g, x);
    int64_t N = type_elements(&t);
    if (decay_elements >= N) return x;
    value row = g_reshape(g, x, type_2d(t.dtype, 1, N));
    return g_reshape(g, g_column_mask(g, row, decay_elements, 0), t);
}

/* The gradient in the type of the weights. */
static value gradient_of(struct graph *g, value gradient, value weights)
{
    enum dtype dtype = graph_type(g, weights)->dtype;
    return graph_type(g, gradient)->dtype == dtype ? gradient : g_cast(g, gradient, dtype);
}

/* AdamW (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2); epsilon is added to the root. */
void expand_adamw(struct graph *g, const struct node *n, const value *in, value *out)
{
    value w = in[0], lr = in[4], bias1 = in[5], bias2 = in[6];
    value d = g_mul(g, gradient_of(g, in[3], in[0]), in[7]);
    int64_t decayed = n->attr.adamw.decay_elements;
    double b1 = n->attr.adamw.beta1, b2 = n->attr.adamw.beta2;
    if (decayed > 0) {
        value shrink = g_mul(g, w, g_scale(g, lr, -n->attr.adamw.weight_decay));
        w = g_add(g, w, decayed_part(g, shrink, decayed));
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

/* SGD with momentum as in torch.optim.SGD: weight decay is added to the gradient, and the
 * learning rate is outside the momentum. g += decay w; v = momentum v + g; w -= lr v. */
void expand_sgdm(struct graph *g, const struct node *n, const value *in, value *out)
{
    value d = g_mul(g, gradient_of(g, in[2], in[0]), in[4]);
    int64_t decayed = n->attr.sgd.decay_elements;
    if (decayed > 0) {
        value decay = g_scale(g, in[0], n->attr.sgd.weight_decay);
        d = g_add(g, d, decayed_part(g, decay, decayed));
    }
    value v = g_add(g, g_scale(g, in[1], n->attr.sgd.momentum), d);
    value w = g_sub(g, in[0], g_mul(g, v, in[3]));
    out[0] = g_store(g, in[0], w);
    out[1] = g_store(g, in[1], v);
}

/* The cost of a copy; the old state is not read. */
struct cost cost_store(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    c.bytes -= (double)type_bytes(&in[0]);
    return c;
}

/* Every input is read once and every output is written once, but the bf16 copy is only written. */
struct cost cost_adamw(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    if (n->op == OP_ADAMW_COPY) c.bytes -= (double)type_bytes(&in[3]);
    c.flops = 14.0 * (double)type_elements(&in[0]);
    return c;
}

struct cost cost_sgdm(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    if (n->op == OP_SGDM_COPY) c.bytes -= (double)type_bytes(&in[2]);
    c.flops = 7.0 * (double)type_elements(&in[0]);
    return c;
}

void grad_sum_squares(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_scale(g, g_mul(g, n->in[0], dout[0]), 2);
}

void expand_sum_squares(struct graph *g, const struct node *, const value *in, value *out)
{
    value x = graph_type(g, in[0])->dtype == DT_BF16 ? g_cast(g, in[0], DT_F32) : in[0];
    value square = g_mul(g, x, x);
    const struct type t = *graph_type(g, square);
    out[0] = g_sum_row(g, g_reshape(g, square, type_1d(t.dtype, type_elements(&t))));
}

struct cost cost_sum_squares(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 2, &in[0]);
}
