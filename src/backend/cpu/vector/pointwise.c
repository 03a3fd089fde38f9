#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/block.h"
#include "backend/cpu/vector/dropout.h"
#include "backend/cpu/vector/silu.h"
#include "base/rng.h"

typedef vf (*unary_fn)(vf x, vf constant);
typedef vf (*binary_fn)(vf a, vf b);

static enum status over_elements(const struct kernel_call *c, int64_t weight, range_fn fn)
{
    parallel_ranges(c, type_elements(&c->out_type[0]), 256, weight, fn);
    return ST_OK;
}

INLINE void unary(const struct block *b, unary_fn f)
{
    const act *x = b->a;
    act *y = b->y;
    const vf constant = vf_all((float)b->attr->constant.value);
    for (int64_t i = 0; i < b->n; i += W)
        store_act(y + i, f(load_act(x + i, b->n - i), constant), b->n - i);
}

/* The block of elements first ... last-1 of a call. `from` is the first operand (NULL: there is
 * none), `b` the second. */
INLINE struct block part_of(const struct kernel_call *c, int64_t first, int64_t last,
                            const void *from, const void *b)
{
    const act *x = from;
    act *y = c->out[0];
    return (struct block){c->attr, x ? x + first : NULL, b, y + first, last - first, first};
}

/* y = f(a, b) for n elements; if `one` is true, b is a single number. */
INLINE void pairs(const act *a, const act *b, act *y, int64_t n, bool one, binary_fn f)
{
    vf fixed = vf_all(one ? act_at(b, 0) : 0.0f);
    for (int64_t i = 0; i < n; i += W)
        store_act(y + i, f(load_act(a + i, n - i), one ? fixed : load_act(b + i, n - i)), n - i);
}

INLINE void binary(const struct kernel_call *c, int64_t first, int64_t last, binary_fn f)
{
    const act *a = c->in[0], *b = c->in[1];
    act *y = c->out[0];
    enum broadcast how = type_broadcast(&c->in_type[0], &c->in_type[1]);
    if (how == BROADCAST_NONE || how == BROADCAST_SCALAR) {
        bool one = how == BROADCAST_SCALAR;
        if (one) pairs(a + first, b, y + first, last - first, true, f);
        if (!one) pairs(a + first, b + first, y + first, last - first, false, f);
        return;
    }
    int64_t period =
        how == BROADCAST_ROW ? type_columns(&c->in_type[0]) : type_elements(&c->in_type[1]);
    for (int64_t i = first; i < last;) {
        int64_t row = i / period, column = i % period, n = min_i64(period - column, last - i);
        if (how == BROADCAST_ROW)
            pairs(a + i, b + row, y + i, n, true, f);
        else
            pairs(a + i, b + column, y + i, n, false, f);
        i += n;
    }
}

/* --- the operators, each an expression --- */

#define UNARY(name, weight, expression)                                                \
    INLINE vf name##_of(vf x, vf constant)                                             \
    {                                                                                  \
        (void)constant;                                                                \
        return expression;                                                             \
    }                                                                                  \
    static void name##_block(const struct block *b)                                    \
    {                                                                                  \
        unary(b, name##_of);                                                           \
    }                                                                                  \
    static void name##_range(const struct kernel_call *c, int64_t first, int64_t last) \
    {                                                                                  \
        const struct block b = part_of(c, first, last, c->in[0], NULL);                \
        name##_block(&b);                                                              \
    }                                                                                  \
    static enum status run_##name(const struct kernel_call *c)                         \
    {                                                                                  \
        return over_elements(c, weight, name##_range);                                 \
    }
#define BINARY(name, expression)                                                       \
    INLINE vf name##_of(vf a, vf b)                                                    \
    {                                                                                  \
        return expression;                                                             \
    }                                                                                  \
    static void name##_block(const struct block *b)                                    \
    {                                                                                  \
        pairs(b->a, b->b, b->y, b->n, false, name##_of);                               \
    }                                                                                  \
    static void name##_range(const struct kernel_call *c, int64_t first, int64_t last) \
    {                                                                                  \
        binary(c, first, last, name##_of);                                             \
    }                                                                                  \
    static enum status run_##name(const struct kernel_call *c)                         \
    {                                                                                  \
        return over_elements(c, 1, name##_range);                                      \
    }

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a *b)
BINARY(div, a / b)
UNARY(scale, 1, x *constant)
UNARY(offset, 1, x + constant)
UNARY(at_most_of, 1, vf_min(constant, x))
UNARY(exp, 3, vf_exp(x))
UNARY(log, 3, vf_log(x))
UNARY(sqrt, 2, vf_sqrt(x))
UNARY(rsqrt, 3, 1.0f / vf_sqrt(x))
UNARY(tanh, 4, vf_tanh(x))
UNARY(sigmoid, 4, vf_sigmoid(x))
UNARY(erf, 5, vf_erf(x))
UNARY(relu, 1, vf_max((vf){0}, x))
UNARY(elu, 3, vf_max((vf){0}, x) + vf_expm1(vf_min((vf){0}, x)))
UNARY(silu, 4, silu_point(x).y)
BINARY(silu_grad, a *silu_point(b).slope)
BINARY(where_positive, vf_select(b > (vf){0}, a, (vf){0}))
BINARY(where_not_positive, vf_select(b > (vf){0}, (vf){0}, a))
BINARY(elu_grad, a *(vf_min((vf){0}, b) + 1.0f))

static void fill_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    act *y = c->out[0];
    vf constant = vf_all((float)c->attr->constant.value);
    for (int64_t i = first; i < last; i += W) store_act(y + i, constant, last - i);
}

static enum status run_fill(const struct kernel_call *c)
{
    return over_elements(c, 1, fill_range);
}

/* first and last count the rows of all square matrices (..., T, T). */
static void causal_mask_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t T = type_columns(&c->in_type[0]);
    vf masked = vf_all((float)c->attr->constant.value);
    for (int64_t row = first; row < last; row++) {
        const act *x = (const act *)c->in[0] + row * T;
        act *y = (act *)c->out[0] + row * T;
        int64_t open = row % T + 1;
        if (x != y) memcpy(y, x, (size_t)open * sizeof *y);
        for (int64_t k = open; k < T; k += W) store_act(y + k, masked, T - k);
    }
}
RUN_ROWS(causal_mask, 1)

/* Masks the columns of each row from number column_mask.columns on. */
static void column_mask_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]), open = min_i64(c->attr->column_mask.columns, n);
    vf masked = vf_all((float)c->attr->column_mask.value);
    for (int64_t row = first; row < last; row++) {
        const act *x = (const act *)c->in[0] + row * n;
        act *y = (act *)c->out[0] + row * n;
        if (x != y) memcpy(y, x, (size_t)open * sizeof *y);
        for (int64_t i = open; i < n; i += W) store_act(y + i, masked, n - i);
    }
}
RUN_ROWS(column_mask, 1)

/* --- dropout; DROPOUT_MASK is dropout of ones --- */

/* If x is NULL, every element is 1. */
INLINE vf load_or_one(const act *x, int64_t i, int64_t left)
{
    return x ? load_act(x + i, left) : vf_all(1.0f);
}

/* b->a is x (NULL: ones) and b->b is the step. */
static void dropout_block(const struct block *b)
{
    const act *x = b->a;
    act *y = b->y;
    struct dropout_run run = VEC(dropout_begin)(&b->attr->drop, step_of(b->b));
    for (int64_t i = 0, n; i < b->n; i += n) {
        int64_t at;
        n = min_i64(VEC(dropout_seek)(&run, b->first + i, &at), b->n - i);
        for (int64_t k = 0; k < n; k += W)
            store_act(y + i + k, dropout_times(&run, at + k, load_or_one(x, i + k, n - k)), n - k);
    }
}

/* first and last count strips of 16 rows of the matrices (B,H,T,T); the last strip of a head may
 * have fewer rows. */
INLINE void dropout_strips(const struct kernel_call *c, int64_t first, int64_t last, const act *x,
                           const void *step)
{
    int64_t T = type_columns(&c->out_type[0]), strips = ceil_div(T, 16);
    act *y = c->out[0];
    float factor[16 * 16];
    for (int64_t s = first; s < last; s++) {
        int64_t bh = s / strips, q16 = s % strips, rows = min_i64(16, T - q16 * 16);
        int64_t origin = (bh * T + q16 * 16) * T;
        for (int64_t k = 0; k < T; k += 16) {
            VEC(dropout_block)(factor, &c->attr->drop, step_of(step), bh, q16, k / 16);
            for (int64_t q = 0; q < rows; q++) {
                int64_t at = origin + q * T + k, n = min_i64(16, T - k);
                for (int64_t i = 0; i < n; i += W) {
                    vf f = vf_load(factor + q * 16 + i);
                    store_act(y + at + i, load_or_one(x, at + i, n - i) * f, n - i);
                }
            }
        }
    }
}

static void dropout_mask_elements(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct block b = part_of(c, first, last, NULL, c->in[0]);
    dropout_block(&b);
}
static void dropout_mask_strips(const struct kernel_call *c, int64_t first, int64_t last)
{
    dropout_strips(c, first, last, NULL, c->in[0]);
}
static void dropout_elements(const struct kernel_call *c, int64_t first, int64_t last)
{
    const struct block b = part_of(c, first, last, c->in[0], c->in[1]);
    dropout_block(&b);
}
static void dropout_of_strips(const struct kernel_call *c, int64_t first, int64_t last)
{
    dropout_strips(c, first, last, c->in[0], c->in[1]);
}

static enum status dropped(const struct kernel_call *c, range_fn elements, range_fn strips)
{
    if (c->attr->drop.pattern == DROPOUT_POINTWISE) return over_elements(c, 3, elements);
    int64_t T = type_columns(&c->out_type[0]);
    parallel_ranges(c, type_rows(&c->out_type[0]) / T * ceil_div(T, 16), 1, 3 * 16 * T, strips);
    return ST_OK;
}

static enum status run_dropout_mask(const struct kernel_call *c)
{
    return dropped(c, dropout_mask_elements, dropout_mask_strips);
}

static enum status run_dropout(const struct kernel_call *c)
{
    return dropped(c, dropout_elements, dropout_of_strips);
}

const block_fn ACT(pointwise_blocks)[OP_COUNT] = {
    [OP_ADD] = add_block,
    [OP_SUB] = sub_block,
    [OP_MUL] = mul_block,
    [OP_DIV] = div_block,
    [OP_SCALE] = scale_block,
    [OP_OFFSET] = offset_block,
    [OP_AT_MOST] = at_most_of_block,
    [OP_EXP] = exp_block,
    [OP_LOG] = log_block,
    [OP_SQRT] = sqrt_block,
    [OP_RSQRT] = rsqrt_block,
    [OP_TANH] = tanh_block,
    [OP_SIGMOID] = sigmoid_block,
    [OP_ERF] = erf_block,
    [OP_RELU] = relu_block,
    [OP_ELU] = elu_block,
    [OP_WHERE_POSITIVE] = where_positive_block,
    [OP_WHERE_NOT_POSITIVE] = where_not_positive_block,
    [OP_ELU_GRAD] = elu_grad_block,
    [OP_SILU] = silu_block,
    [OP_SILU_GRAD] = silu_grad_block,
    [OP_DROPOUT] = dropout_block,
};

const struct kernel ACT(pointwise_rows)[] = {
    ROW(ADD, "aa", "a", run_add),
    ROW(SUB, "aa", "a", run_sub),
    ROW(MUL, "aa", "a", run_mul),
    ROW(DIV, "aa", "a", run_div),
    ROW(SCALE, "aa", "a", run_scale),
    ROW(OFFSET, "aa", "a", run_offset),
    ROW(AT_MOST, "aa", "a", run_at_most_of),
    ROW(EXP, "aa", "a", run_exp),
    ROW(LOG, "aa", "a", run_log),
    ROW(SQRT, "aa", "a", run_sqrt),
    ROW(RSQRT, "aa", "a", run_rsqrt),
    ROW(TANH, "aa", "a", run_tanh),
    ROW(SIGMOID, "aa", "a", run_sigmoid),
    ROW(ERF, "aa", "a", run_erf),
    ROW(RELU, "aa", "a", run_relu),
    ROW(ELU, "aa", "a", run_elu),
    ROW(WHERE_POSITIVE, "aa", "a", run_where_positive),
    ROW(WHERE_NOT_POSITIVE, "aa", "a", run_where_not_positive),
    ROW(ELU_GRAD, "aa", "a", run_elu_grad),
    ROW(SILU, "aa", "a", run_silu),
    ROW(SILU_GRAD, "aa", "a", run_silu_grad),
    ROW(FILL, "aa", "a", run_fill),
    ROW(CAUSAL_MASK, "aa", "a", run_causal_mask),
    ROW(COLUMN_MASK, "aa", "a", run_column_mask),
    ROW(DROPOUT_MASK, "i", "a", run_dropout_mask),
    ROW(DROPOUT, "ai", "a", run_dropout),
    {0},
};
