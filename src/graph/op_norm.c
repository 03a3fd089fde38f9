/* Operators on row statistics: layer normalization (Ba et al., arXiv 1607.06450), RMS normalization
 * (Zhang and Sennrich, arXiv 1910.07467) and softmax. */
#include "graph/build.h"
#include "graph/op_rules.h"

static struct type statistic(struct type t)
{
    t.dim[t.rank - 1] = 1;
    t.dtype = dtype_of_statistics(t.dtype);
    return t;
}

/* x (...,C), w (C) [, bias (C)] -> y (...,C), mean (...,1), rstd (...,1) */
enum status shape_layernorm(struct node *n, const struct type *in, const struct type *,
                            struct type *out)
{
    for (int i = 1; i < n->n_in; i++)
        if (in[i].rank != 1 || in[i].dim[0] != type_columns(&in[0]))
            return fail(ST_USAGE, "weight and bias need %lld elements",
                        (long long)type_columns(&in[0]));
    out[0] = in[0];
    out[1] = out[2] = statistic(in[0]);
    n->n_out = 3;
    return ST_OK;
}

/* [dres,] dy, x, w, mean, rstd -> dx, dw [, dbias] */
enum status shape_layernorm_grad(struct node *n, const struct type *in, const struct type *,
                                 struct type *out)
{
    const struct type *w = &in[n->n_in - 3], *x = &in[n->n_in - 4];
    if (!type_same(&in[0], x) || w->rank != 1)
        return fail(ST_USAGE, "the adjoint and the input differ in shape");
    out[0] = in[0];
    out[1] = out[2] = *w;
    n->n_out = n->attr.norm.bias ? 3 : 2;
    return ST_OK;
}

void grad_layernorm(struct graph *g, const struct node *n, const value *dout, value *din)
{
    union attr attr = {.norm = {.eps = n->attr.norm.eps, .bias = n->n_in == 3}};
    value in[] = {dout[0], n->in[0], n->in[1], n->out[1], n->out[2]};
    value first = graph_add(g, OP_LAYERNORM_GRAD, &attr, 5, in, NULL);
    for (int i = 0; i < n->n_in; i++) din[i] = graph_out(first, i);
}

void expand_layernorm(struct graph *g, const struct node *n, const value *in, value *out)
{
    double C = (double)type_columns(graph_type(g, in[0]));
    value mean = g_scale(g, g_sum_row(g, in[0]), 1 / C);
    value x = g_sub(g, in[0], mean);
    value variance = g_scale(g, g_sum_row(g, g_mul(g, x, x)), 1 / C);
    value rstd = g_rsqrt(g, g_offset(g, variance, n->attr.norm.eps));
    value y = g_mul(g, g_mul(g, x, rstd), in[1]);
    out[0] = n->n_in == 3 ? g_add(g, y, in[2]) : y;
    out[1] = mean;
    out[2] = rstd;
}

/* xhat = (x - mean) rstd, e = dy w: dx = rstd (e - mean(e) - xhat mean(e xhat)) */
void expand_layernorm_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    value dy = in[0], w = in[2];
    struct type tw = *graph_type(g, w);
    double C = (double)tw.dim[0];
    value xhat = g_mul(g, g_sub(g, in[1], in[3]), in[4]);
    value e = g_mul(g, dy, w);
    value mean_e = g_scale(g, g_sum_row(g, e), 1 / C);
    value mean_ex = g_scale(g, g_sum_row(g, g_mul(g, e, xhat)), 1 / C);
    value inner = g_sub(g, g_sub(g, e, mean_e), g_mul(g, xhat, mean_ex));
    out[0] = g_mul(g, inner, in[4]);
    out[1] = g_sum_leading(g, g_mul(g, dy, xhat), tw);
    if (n->attr.norm.bias) out[2] = g_sum_leading(g, dy, tw);
}

void expand_layernorm_grad_add(struct graph *g, const struct node *n, const value *in, value *out)
{
    value first = graph_add(g, OP_LAYERNORM_GRAD, &n->attr, 5, in + 1, NULL);
    for (int i = 0; i < n->n_out; i++) out[i] = graph_out(first, i);
    out[0] = g_add(g, in[0], out[0]);
}

/* dres, dy, x, w, mean, rstd, step -> dx, dropout(dx), dw [, dbias]. dropout(dx) is the gradient
 * of the branch that went through dropout before it was added to x. */
enum status shape_layernorm_grad_drop(struct node *n, const struct type *in,
                                      const struct type *given, struct type *out)
{
    struct node grad = {.op = OP_LAYERNORM_GRAD_ADD, .n_in = n->n_in - 1, .attr = n->attr};
    TRY(shape_layernorm_grad(&grad, in, given, out + 1));
    out[0] = out[1];
    n->n_out = grad.n_out + 1;
    return ST_OK;
}

void expand_layernorm_grad_drop(struct graph *g, const struct node *n, const value *in, value *out)
{
    union attr attr = n->attr;
    attr.norm.drop = (struct dropout){0};
    value first = graph_add(g, OP_LAYERNORM_GRAD_ADD, &attr, 6, in, NULL);
    out[0] = first;
    out[1] = g_dropout(g, first, in[6], n->attr.norm.drop);
    for (int i = 2; i < n->n_out; i++) out[i] = graph_out(first, i - 1);
}

/* a (...,C), b (...,C), step, w (C) [, bias (C)] -> a + dropout(b), y, mean, rstd */
enum status shape_add_layernorm(struct node *n, const struct type *in, const struct type *given,
                                struct type *out)
{
    struct node norm = {.op = OP_LAYERNORM, .n_in = n->n_in - 2};
    struct type norm_in[] = {in[0], in[3], in[n->n_in - 1]};
    if (!type_same(&in[0], &in[1])) return fail(ST_USAGE, "the two branches differ in shape");
    TRY(shape_layernorm(&norm, norm_in, given, out + 1));
    out[0] = in[0];
    n->n_out = 4;
    return ST_OK;
}

void expand_add_layernorm(struct graph *g, const struct node *n, const value *in, value *out)
{
    struct dropout drop = n->attr.norm.drop;
    value branch = drop.threshold ? g_dropout(g, in[1], in[2], drop) : in[1];
    out[0] = g_add(g, in[0], branch);
    value y = g_layernorm(g, out[0], in[3], n->n_in == 5 ? in[4] : (value){0}, n->attr.norm.eps);
    for (int i = 0; i < 3; i++) out[i + 1] = graph_out(y, i);
}

/* x (...,C), w (C) -> y = x rrms w (...,C), rrms = 1 / sqrt(mean(x^2) + eps) (...,1) */
enum status shape_rmsnorm(struct node *n, const struct type *in, const struct type *given,
                          struct type *out)
{
    struct node norm = {.op = OP_LAYERNORM, .n_in = 2};
    struct type both[3];
    TRY(shape_layernorm(&norm, in, given, both));
    out[0] = both[0];
    out[1] = both[2];
    n->n_out = 2;
    return ST_OK;
}

/* [dres,] dy, x, w, rrms -> dx, dw */
enum status shape_rmsnorm_grad(struct node *n, const struct type *in, const struct type *,
                               struct type *out)
{
    const struct type *w = &in[n->n_in - 2], *x = &in[n->n_in - 3];
    if (!type_same(&in[0], x) || w->rank != 1)
        return fail(ST_USAGE, "the adjoint and the input differ in shape");
    out[0] = in[0];
    out[1] = *w;
    n->n_out = 2;
    return ST_OK;
}

void grad_rmsnorm(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value in[] = {dout[0], n->in[0], n->in[1], n->out[1]};
    din[0] = graph_add(g, OP_RMSNORM_GRAD, &n->attr, 4, in, NULL);
    din[1] = graph_out(din[0], 1);
}

void expand_rmsnorm(struct graph *g, const struct node *n, const value *in, value *out)
{
    double C = (double)type_columns(graph_type(g, in[0]));
    value square = g_scale(g, g_sum_row(g, g_mul(g, in[0], in[0])), 1 / C);
    out[1] = g_rsqrt(g, g_offset(g, square, n->attr.norm.eps));
    out[0] = g_mul(g, g_mul(g, in[0], out[1]), in[1]);
}

/* xhat = x rrms, e = dy w: dx = rrms (e - xhat mean(e xhat)) */
void expand_rmsnorm_grad(struct graph *g, const struct node *, const value *in, value *out)
{
    value dy = in[0], w = in[2];
    struct type tw = *graph_type(g, w);
    value xhat = g_mul(g, in[1], in[3]);
    value e = g_mul(g, dy, w);
    value mean_ex = g_scale(g, g_sum_row(g, g_mul(g, e, xhat)), 1 / (double)tw.dim[0]);
    out[0] = g_mul(g, g_sub(g, e, g_mul(g, xhat, mean_ex)), in[3]);
    out[1] = g_sum_leading(g, g_mul(g, dy, xhat), tw);
}

void expand_rmsnorm_grad_add(struct graph *g, const struct node *n, const value *in, value *out)
{
    value first = graph_add(g, OP_RMSNORM_GRAD, &n->attr, 4, in + 1, NULL);
    out[0] = g_add(g, in[0], first);
    out[1] = graph_out(first, 1);
}

/* a (...,C), b (...,C), w (C) -> a + b, y, rrms */
enum status shape_add_rmsnorm(struct node *n, const struct type *in, const struct type *given,
                              struct type *out)
{
    struct node norm = {.op = OP_RMSNORM, .n_in = 2};
    struct type norm_in[] = {in[0], in[2]};
    if (!type_same(&in[0], &in[1])) return fail(ST_USAGE, "the two branches differ in shape");
    TRY(shape_rmsnorm(&norm, norm_in, given, out + 1));
    out[0] = in[0];
    n->n_out = 3;
    return ST_OK;
}

void expand_add_rmsnorm(struct graph *g, const struct node *n, const value *in, value *out)
{
    out[0] = g_add(g, in[0], in[1]);
    out[1] = g_rmsnorm(g, out[0], in[2], n->attr.norm.eps);
    out[2] = graph_out(out[1], 1);
}

static bool is_rms(enum op op)
{
    return op == OP_RMSNORM || op == OP_RMSNORM_GRAD || op == OP_ADD_RMSNORM ||
           op == OP_RMSNORM_GRAD_ADD;
}

/* FLOPs per element for the fused sum and dropout. */
static double fused_flops(const struct node *n)
{
    bool sum = n->op == OP_ADD_LAYERNORM || n->op == OP_LAYERNORM_GRAD_ADD ||
               n->op == OP_LAYERNORM_GRAD_DROP || n->op == OP_ADD_RMSNORM ||
               n->op == OP_RMSNORM_GRAD_ADD;
    return (sum ? 1 : 0) + (sum && n->attr.norm.drop.threshold ? 1 : 0);
}

struct cost cost_norm(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, (is_rms(n->op) ? 4 : 8) + fused_flops(n), &in[0]);
}

struct cost cost_norm_grad(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, (is_rms(n->op) ? 9 : 16) + fused_flops(n), &in[0]);
}

void grad_softmax(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_softmax_grad(g, dout[0], n->out[0]);
}

/* Softmax does not depend on the shift by the maximum, so no gradient flows through it. */
void expand_softmax(struct graph *g, const struct node *, const value *in, value *out)
{
    value e = g_exp(g, g_sub(g, in[0], g_detach(g, g_max_row(g, in[0]))));
    out[0] = g_div(g, e, g_sum_row(g, e));
}

/* y (dy - sum(dy y)) */
void expand_softmax_grad(struct graph *g, const struct node *, const value *in, value *out)
{
    value dot = g_sum_row(g, g_mul(g, in[0], in[1]));
    out[0] = g_mul(g, g_sub(g, in[0], dot), in[1]);
}
