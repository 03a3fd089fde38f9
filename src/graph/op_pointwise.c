/* Pointwise operators and activations. */
#include "graph/build.h"
#include "graph/op_rules.h"

#include <math.h>

enum status shape_binary(struct node *n, const struct type *in, const struct type *given,
                         struct type *out)
{
    char a[TYPE_TEXT], b[TYPE_TEXT];
    if (in[0].dtype != in[1].dtype || type_broadcast(&in[0], &in[1]) == BROADCAST_BAD)
        return fail(ST_USAGE, "%s cannot be combined with %s", type_text(a, &in[0]),
                    type_text(b, &in[1]));
    return shape_same(n, in, given, out);
}

/* The adjoint of an operand: if the operand was broadcast, the sum over its copies. */
static value sum_broadcast(struct graph *g, value d, value operand)
{
    const struct type td = *graph_type(g, d), to = *graph_type(g, operand);
    if (g->st != ST_OK) return d;
    switch (type_broadcast(&td, &to)) {
    case BROADCAST_NONE:
        return d;
    case BROADCAST_SCALAR: {
        value flat = g_reshape(g, d, type_1d(td.dtype, type_elements(&td)));
        return g_reshape(g, g_sum_row(g, flat), to);
    }
    case BROADCAST_ROW:
        return g_sum_row(g, d);
    case BROADCAST_TRAILING:
        return g_sum_leading(g, d, to);
    case BROADCAST_BAD:
        break;
    }
    bug(__FILE__, __LINE__, "a broadcast that the shape rule refused");
}

void grad_add(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = dout[0];
    din[1] = sum_broadcast(g, dout[0], n->in[1]);
}

void grad_sub(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = dout[0];
    din[1] = g_scale(g, sum_broadcast(g, dout[0], n->in[1]), -1);
}

void grad_mul(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_mul(g, dout[0], n->in[1]);
    din[1] = sum_broadcast(g, g_mul(g, dout[0], n->in[0]), n->in[1]);
}

/* y = a / b: da = d / b, db = -d y / b */
void grad_div(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_div(g, dout[0], n->in[1]);
    din[1] = g_scale(g, sum_broadcast(g, g_mul(g, din[0], n->out[0]), n->in[1]), -1);
}

void grad_scale(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_scale(g, dout[0], n->attr.constant.value);
}

void grad_pass(struct graph *, const struct node *, const value *dout, value *din)
{
    din[0] = dout[0];
}

void grad_stop(struct graph *, const struct node *, const value *, value *) {}

void grad_exp(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_mul(g, dout[0], n->out[0]);
}

void grad_log(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_div(g, dout[0], n->in[0]);
}

/* d / (2 y) */
void grad_sqrt(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_scale(g, g_div(g, dout[0], n->out[0]), 0.5);
}

/* -d y^3 / 2 */
void grad_rsqrt(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value y = n->out[0];
    din[0] = g_scale(g, g_mul(g, dout[0], g_mul(g, y, g_mul(g, y, y))), -0.5);
}

/* d (1 - y^2) */
void grad_tanh(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value y = n->out[0];
    din[0] = g_mul(g, dout[0], g_offset(g, g_scale(g, g_mul(g, y, y), -1), 1));
}

/* d y (1 - y) */
void grad_sigmoid(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value y = n->out[0];
    din[0] = g_mul(g, dout[0], g_mul(g, y, g_offset(g, g_scale(g, y, -1), 1)));
}

/* d 2/sqrt(pi) exp(-x^2) */
void grad_erf(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value x = n->in[0];
    value bell = g_exp(g, g_scale(g, g_mul(g, x, x), -1));
    din[0] = g_scale(g, g_mul(g, dout[0], bell), M_2_SQRTPI);
}

void grad_causal_mask(struct graph *g, const struct node *, const value *dout, value *din)
{
    din[0] = g_causal_mask(g, dout[0], 0);
}

void grad_column_mask(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_column_mask(g, dout[0], n->attr.column_mask.columns, 0);
}

void grad_cast(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_cast(g, dout[0], graph_type(g, n->in[0])->dtype);
}

/* GELU (Hendrycks and Gimpel, arXiv 1606.08415): x Phi(x), or its tanh approximation. */
static const double TANH_CUBIC = 0.044715;

void grad_gelu(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_gelu_grad(g, dout[0], n->in[0], n->attr.gelu.tanh);
}

static value gelu_inner(struct graph *g, value x) /* sqrt(2/pi) (x + 0.044715 x^3) */
{
    value cube = g_mul(g, g_mul(g, x, x), x);
    return g_scale(g, g_add(g, x, g_scale(g, cube, TANH_CUBIC)), sqrt(2 / M_PI));
}

void expand_gelu(struct graph *g, const struct node *n, const value *in, value *out)
{
    value x = in[0];
    value s = n->attr.gelu.tanh ? g_tanh(g, gelu_inner(g, x)) : g_erf(g, g_scale(g, x, M_SQRT1_2));
    out[0] = g_scale(g, g_mul(g, x, g_offset(g, s, 1)), 0.5);
}

/* x -> gelu(x), gelu'(x); the backward pass multiplies by gelu'(x) */
enum status shape_gelu_both(struct node *n, const struct type *in, const struct type *given,
                            struct type *out)
{
    TRY(shape_same(n, in, given, out));
    out[1] = in[0];
    n->n_out = 2;
    return ST_OK;
}

void expand_gelu_both(struct graph *g, const struct node *n, const value *in, value *out)
{
    out[0] = g_gelu(g, in[0], n->attr.gelu.tanh);
    value one = g_fill(g, *graph_type(g, in[0]), 1);
    out[1] = g_gelu_grad(g, one, in[0], n->attr.gelu.tanh);
}

void expand_gelu_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    value dy = in[0], x = in[1], slope;
    value xx = g_mul(g, x, x);
    if (n->attr.gelu.tanh) {
        value t = g_tanh(g, gelu_inner(g, x));
        value inner = g_scale(g, g_offset(g, g_scale(g, xx, 3 * TANH_CUBIC), 1), sqrt(2 / M_PI));
        value sech2 = g_offset(g, g_scale(g, g_mul(g, t, t), -1), 1);
        value bend = g_mul(g, g_mul(g, x, sech2), inner);
        slope = g_scale(g, g_add(g, g_offset(g, t, 1), bend), 0.5);
    } else {
        value cdf = g_scale(g, g_offset(g, g_erf(g, g_scale(g, x, M_SQRT1_2)), 1), 0.5);
        value pdf = g_scale(g, g_exp(g, g_scale(g, xx, -0.5)), M_2_SQRTPI * M_SQRT1_2 * 0.5);
        slope = g_add(g, cdf, g_mul(g, x, pdf));
    }
    out[0] = g_mul(g, dy, slope);
}

struct cost cost_gelu(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 10, &out[0]);
}

/* dy, y -> dx, for functions whose slope can be computed from their output y. Also WHERE_POSITIVE
 * and WHERE_NOT_POSITIVE: a, b -> a or 0. */
enum status shape_slope(struct node *n, const struct type *in, const struct type *given,
                        struct type *out)
{
    if (!type_same(&in[0], &in[1])) return fail(ST_USAGE, "the two operands differ in shape");
    return shape_same(n, in, given, out);
}

/* WHERE_POSITIVE is a where b > 0, else 0; WHERE_NOT_POSITIVE is a where b is not > 0, else 0.
 * Elements of a that are not in the result may be infinite or NaN. The gradient with respect to b
 * is zero. */
void grad_where(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = n->op == OP_WHERE_POSITIVE ? g_where_positive(g, dout[0], n->in[1])
                                        : g_where_not_positive(g, dout[0], n->in[1]);
}

/* RELU is max(x, 0); its gradient is WHERE_POSITIVE(dy, y). ELU (Clevert et al., arXiv 1511.07289)
 * with alpha = 1 is x for x > 0 (slope 1), else e^x - 1 (slope y + 1). */
void grad_slope(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value in[] = {dout[0], n->out[0]};
    din[0] = graph_add(g, n->op == OP_RELU ? OP_WHERE_POSITIVE : OP_ELU_GRAD, NULL, 2, in, NULL);
}

/* The argument of the exponential is min(x, 0) = x - max(x, 0), so it never overflows. */
void expand_elu(struct graph *g, const struct node *, const value *in, value *out)
{
    value right = g_relu(g, in[0]);
    value left = g_offset(g, g_exp(g, g_sub(g, in[0], right)), -1);
    out[0] = g_add(g, left, right);
}

void expand_elu_grad(struct graph *g, const struct node *, const value *in, value *out)
{
    value left = g_sub(g, in[1], g_relu(g, in[1]));
    out[0] = g_mul(g, in[0], g_offset(g, left, 1));
}

/* The gradient is dropout of dy with the same mask, which is generated again from its counter. */
void grad_dropout(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_dropout(g, dout[0], n->in[1], n->attr.drop);
}

void expand_dropout(struct graph *g, const struct node *n, const value *in, value *out)
{
    out[0] = g_mul(g, in[0], g_dropout_mask(g, in[1], n->attr.drop, *graph_type(g, in[0])));
}
