/* Cross-entropy over rows of logits: lse = log sum exp(x) over the vocabulary, loss = lse - x[target],
 * gradient = softmax - one at the target. Columns from attr.loss.vocab on are padding. */
#include "backend/cpu/vector/common.h"

INLINE const float *logits_row(const struct kernel_call *c, int64_t row)
{
    return (const float *)c->in[0] + row * type_columns(&c->in_type[0]);
}

INLINE int64_t target_of(const struct kernel_call *c, int64_t row)
{
    int64_t id = ((const int32_t *)c->in[1])[row];
    BUG_IF(id < 0 || id >= c->attr->loss.vocab, "target %lld of %lld", (long long)id,
           (long long)c->attr->loss.vocab);
    return id;
}

INLINE float largest(const float *x, int64_t n)
{
    vf top = vf_all(-INFINITY);
    int64_t i = 0;
    for (; i + W <= n; i += W) top = vf_max(top, vf_load(x + i));
    if (i < n)
        top =
            vf_max(top, vf_select(vf_lanes(n - i), vf_load_part(x + i, n - i), vf_all(-INFINITY)));
    return vf_largest(top);
}

/* The sum of exp(x - top); the terms themselves go to e, if it is not NULL. */
INLINE float sum_of_exp(const float *x, float *e, int64_t n, float top)
{
    vf sum = {0};
    for (int64_t i = 0; i < n; i += W) {
        vf a = vf_exp(take(x + i, n - i) - top);
        sum += vf_select(vf_lanes(n - i), a, (vf){0});
        if (e) put(e + i, a, n - i);
    }
    return vf_sum(sum);
}

static void cross_entropy_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = c->attr->loss.vocab;
    for (int64_t r = first; r < last; r++) {
        const float *x = logits_row(c, r);
        float top = largest(x, n);
        ((float *)c->out[1])[r] = top + logf(sum_of_exp(x, NULL, n, top));
    }
}

static enum status run_cross_entropy(const struct kernel_call *c)
{
    TRY(VEC(over_rows)(c, 3, cross_entropy_range));
    int64_t rows = type_rows(&c->in_type[0]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += (double)((const float *)c->out[1])[r] - (double)logits_row(c, r)[target_of(c, r)];
    *(float *)c->out[0] = (float)(sum / (double)rows);
    return ST_OK;
}

/* A row of probabilities times scale becomes the gradient. */
INLINE void less_one(const struct kernel_call *c, float *dx, int64_t target, float scale)
{
    int64_t n = c->attr->loss.vocab, columns = type_columns(&c->in_type[0]);
    dx[target] -= scale;
    if (n < columns) memset(dx + n, 0, (size_t)(columns - n) * sizeof *dx);
}

static void cross_entropy_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = c->attr->loss.vocab, columns = type_columns(&c->in_type[0]);
    float scale = *(const float *)c->in[3] / (float)type_rows(&c->in_type[0]);
    for (int64_t r = first; r < last; r++) {
        const float *x = logits_row(c, r);
        float *dx = (float *)c->out[0] + r * columns, lse = ((const float *)c->in[2])[r];
        for (int64_t i = 0; i < n; i += W)
            put(dx + i, scale * vf_exp(take(x + i, n - i) - lse), n - i);
        less_one(c, dx, target_of(c, r), scale);
    }
}

static enum status run_cross_entropy_grad(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 3, cross_entropy_grad_range);
}

/* --- both at once: one exponential for each logit; scratch holds the losses of the rows --- */

static int64_t both_scratch(const struct kernel_call *c)
{
    return type_rows(&c->in_type[0]) * (int64_t)sizeof(float);
}

static void both_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = c->attr->loss.vocab, columns = type_columns(&c->in_type[0]);
    float scale = *(const float *)c->in[2] / (float)type_rows(&c->in_type[0]);
    for (int64_t r = first; r < last; r++) {
        const float *x = logits_row(c, r);
        float *dx = (float *)c->out[0] + r * columns;
        int64_t target = target_of(c, r);
        float top = largest(x, n), at_target = x[target], sum = sum_of_exp(x, dx, n, top);
        ((float *)c->scratch)[r] = top + logf(sum) - at_target;
        for (int64_t i = 0; i < n; i += W) put(dx + i, take(dx + i, n - i) * (scale / sum), n - i);
        less_one(c, dx, target, scale);
    }
}

static enum status run_both(const struct kernel_call *c)
{
    TRY(VEC(over_rows)(c, 4, both_range));
    int64_t rows = type_rows(&c->in_type[0]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) sum += (double)((const float *)c->scratch)[r];
    *(float *)c->out[1] = (float)(sum / (double)rows);
    return ST_OK;
}

/* clang-format off */
const struct kernel VEC(loss_rows)[] = {
    {.op = OP_CROSS_ENTROPY,      .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_cross_entropy},
    {.op = OP_CROSS_ENTROPY_GRAD, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_cross_entropy_grad},
    {.op = OP_CROSS_ENTROPY_BOTH, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_both,
     .scratch_bytes = both_scratch},
    {0},
};
/* clang-format on */
