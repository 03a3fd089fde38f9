/* pointwise.h - reference kernels of pointwise operators. Included by ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_POINTWISE_H
#define BACKEND_CPU_REF_POINTWISE_H

#include "backend/cpu/ref/functions.h"
#include "backend/cpu/ref/ref.h"

/* out[i] = f(a[i], b[j]): b has the shape of a, or is broadcast: a single element, one element per
 * row, or the trailing dimensions of a. */
static enum status binary(const struct kernel_call *c, double (*f)(double, double))
{
    const real *a = c->in[0], *b = c->in[1];
    real *out = c->out[0];
    enum broadcast kind = type_broadcast(&c->in_type[0], &c->in_type[1]);
    int64_t columns = type_columns(&c->in_type[0]), trailing = type_elements(&c->in_type[1]);
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++) {
        int64_t j = broadcast_index(kind, i, columns, trailing);
        out[i] = (real)f((double)a[i], (double)b[j]);
    }
    return ST_OK;
}

/* out[i] = f(x[i], the constant of the node). */
static enum status unary(const struct kernel_call *c, double (*f)(double x, double constant))
{
    const real *x = c->in[0];
    real *out = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        out[i] = (real)f((double)x[i], c->attr->constant.value);
    return ST_OK;
}

#define UNARY(name, f)                                         \
    static enum status run_##name(const struct kernel_call *c) \
    {                                                          \
        return unary(c, f);                                    \
    }
#define BINARY(name, f)                                        \
    static enum status run_##name(const struct kernel_call *c) \
    {                                                          \
        return binary(c, f);                                   \
    }
BINARY(add, add)
BINARY(sub, sub)
BINARY(mul, mul)
BINARY(div, divide)
UNARY(scale, mul)
UNARY(offset, add)
UNARY(at_most, at_most)
UNARY(exp, exp_of)
UNARY(log, log_of)
UNARY(sqrt, sqrt_of)
UNARY(rsqrt, rsqrt_of)
UNARY(tanh, tanh_of)
UNARY(sigmoid, sigmoid_of)
UNARY(erf, erf_of)
UNARY(relu, relu)
BINARY(where_positive, where_positive)
BINARY(where_not_positive, where_not_positive)
UNARY(elu, elu)
BINARY(elu_grad, elu_grad)
UNARY(silu, silu_of)
BINARY(silu_grad, silu_grad)

/* Gate and up, (rows,F) each: the halves of each row of one (rows,2F) tensor, or two tensors.
 * `stride` is the distance between rows, in elements. */
struct gated {
    const real *gate, *up;
    int64_t stride, rows, F;
};

static struct gated gated_of(const struct kernel_call *c, int first)
{
    int n = c->n_in - first;
    int64_t columns = type_columns(&c->in_type[first]), F = n == 1 ? columns / 2 : columns;
    const real *gate = c->in[first];
    return (struct gated){gate, n == 1 ? gate + F : (const real *)c->in[first + 1], columns,
                          type_rows(&c->in_type[first]), F};
}

static enum status run_swiglu(const struct kernel_call *c)
{
    const struct gated x = gated_of(c, 0);
    real *y = c->out[0];
    for (int64_t row = 0; row < x.rows; row++)
        for (int64_t i = 0; i < x.F; i++) {
            int64_t at = row * x.stride + i;
            y[row * x.F + i] = (real)(silu((double)x.gate[at]) * (double)x.up[at]);
        }
    return ST_OK;
}

/* dy (...,F), gate, up -> the gradients of gate and up, which may overwrite gate and up */
static enum status run_swiglu_grad(const struct kernel_call *c)
{
    const struct gated x = gated_of(c, 1);
    const real *dy = c->in[0];
    real *dgate = c->out[0], *dup = c->n_out == 1 ? dgate + x.F : (real *)c->out[1];
    for (int64_t row = 0; row < x.rows; row++)
        for (int64_t i = 0; i < x.F; i++) {
            int64_t at = row * x.stride + i;
            double d = (double)dy[row * x.F + i], gate = (double)x.gate[at], up = (double)x.up[at];
            dgate[at] = (real)silu_grad(d * up, gate);
            dup[at] = (real)(d * silu(gate));
        }
    return ST_OK;
}

/* x (...,T,T): elements above the diagonal (key k > query row % T) become the constant. */
static enum status run_causal_mask(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *out = c->out[0];
    int64_t T = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++)
        for (int64_t k = 0; k < T; k++)
            out[row * T + k] = k > row % T ? (real)c->attr->constant.value : x[row * T + k];
    return ST_OK;
}

/* x (...,C): columns from column_mask.columns on become column_mask.value. */
static enum status run_column_mask(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *out = c->out[0];
    int64_t C = type_columns(&c->in_type[0]);
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++)
        out[i] = i % C >= c->attr->column_mask.columns ? (real)c->attr->column_mask.value : x[i];
    return ST_OK;
}

static enum status run_dropout_mask(const struct kernel_call *c)
{
    const int32_t *step = c->in[0];
    real *out = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        out[i] = (real)keep_element(&c->attr->drop, step, &c->out_type[0], i);
    return ST_OK;
}

static enum status run_dropout(const struct kernel_call *c)
{
    const real *x = c->in[0];
    const int32_t *step = c->in[1];
    real *out = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        out[i] = (real)((double)x[i] * keep_element(&c->attr->drop, step, &c->out_type[0], i));
    return ST_OK;
}

static enum status run_gelu(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *out = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        out[i] = (real)gelu((double)x[i], c->attr->gelu.tanh);
    return ST_OK;
}

static enum status run_gelu_and_derivative(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *y = c->out[0], *slope = c->out[1];
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++) {
        double at = (double)x[i]; /* read before the stores: y may alias x */
        y[i] = (real)gelu(at, c->attr->gelu.tanh);
        slope[i] = (real)gelu_derivative(at, c->attr->gelu.tanh);
    }
    return ST_OK;
}

static enum status run_gelu_grad(const struct kernel_call *c)
{
    const real *dy = c->in[0], *x = c->in[1];
    real *dx = c->out[0];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        dx[i] = (real)((double)dy[i] * gelu_derivative((double)x[i], c->attr->gelu.tanh));
    return ST_OK;
}

const struct kernel REF(ref_pointwise)[] = {
    ROW(ADD, run_add),
    ROW(SUB, run_sub),
    ROW(MUL, run_mul),
    ROW(DIV, run_div),
    ROW(SCALE, run_scale),
    ROW(OFFSET, run_offset),
    ROW(AT_MOST, run_at_most),
    ROW(EXP, run_exp),
    ROW(LOG, run_log),
    ROW(SQRT, run_sqrt),
    ROW(RSQRT, run_rsqrt),
    ROW(TANH, run_tanh),
    ROW(SIGMOID, run_sigmoid),
    ROW(ERF, run_erf),
    ROW(RELU, run_relu),
    ROW(WHERE_POSITIVE, run_where_positive),
    ROW(WHERE_NOT_POSITIVE, run_where_not_positive),
    ROW(ELU, run_elu),
    ROW(ELU_GRAD, run_elu_grad),
    ROW(SILU, run_silu),
    ROW(SILU_GRAD, run_silu_grad),
    ROW(SWIGLU, run_swiglu),
    ROW(SWIGLU_GRAD, run_swiglu_grad),
    ROW(CAUSAL_MASK, run_causal_mask),
    ROW(COLUMN_MASK, run_column_mask),
    ROW_TYPES(DROPOUT_MASK, "i", "a", run_dropout_mask),
    ROW_TYPES(DROPOUT, "ai", "a", run_dropout),
    ROW(GELU, run_gelu),
    ROW(GELU_GRAD, run_gelu_grad),
    ROW(GELU_BOTH, run_gelu_and_derivative),
    {.run = NULL},
};

#endif
