/* Cross-entropy over rows of logits: lse = log sum exp(x) over the vocabulary, loss = lse - x[target],
 * gradient = softmax - one at the target. Columns from attr.loss.vocab on are padding. */
#include "backend/cpu/vector/act.h"

INLINE const act *logits_row(const struct kernel_call *c, int64_t row)
{
    return (const act *)c->in[0] + row * type_columns(&c->in_type[0]);
}

INLINE int64_t target_of(const struct kernel_call *c, int64_t row)
{
    int64_t id = ((const int32_t *)c->in[1])[row];
    BUG_IF(id < 0 || id >= c->attr->loss.vocab, "target %lld of %lld", (long long)id,
           (long long)c->attr->loss.vocab);
    return id;
}

INLINE float largest(const act *x, int64_t n)
{
    vf top = vf_all(-INFINITY);
    int64_t i = 0;
    for (; i + W <= n; i += W) top = vf_max(top, load_act(x + i));
    if (i < n)
        top = vf_max(top, vf_select(vf_lanes(n - i), take_act(x + i, n - i), vf_all(-INFINITY)));
    return vf_largest(top);
}

INLINE float sum_of_exp(const act *x, int64_t n, float top)
{
    vf sum = {0};
    for (int64_t i = 0; i < n; i += W) {
        vf a = vf_exp(take_act(x + i, n - i) - top);
        sum += vf_select(vf_lanes(n - i), a, (vf){0});
    }
    return vf_sum(sum);
}

static void cross_entropy_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = c->attr->loss.vocab;
    for (int64_t r = first; r < last; r++) {
        const act *x = logits_row(c, r);
        float top = largest(x, n);
        ((float *)c->out[1])[r] = top + logf(sum_of_exp(x, n, top));
    }
}

static enum status run_cross_entropy(const struct kernel_call *c)
{
    TRY(VEC(over_rows)(c, 3, cross_entropy_range));
    int64_t rows = type_rows(&c->in_type[0]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        sum += (double)((const float *)c->out[1])[r] -
               (double)act_at(logits_row(c, r), target_of(c, r));
    *(float *)c->out[0] = (float)(sum / (double)rows);
    return ST_OK;
}

/* dx = p - scale at the target, p elsewhere, where p = factor exp(x - shift); zeros on the padding.
 * dx may be x. */
INLINE void grad_row(const struct kernel_call *c, int64_t row, float shift, float factor,
                     float scale)
{
    int64_t n = c->attr->loss.vocab, columns = type_columns(&c->in_type[0]);
    int64_t target = target_of(c, row);
    const act *x = logits_row(c, row);
    act *dx = (act *)c->out[0] + row * columns;
    float at_target = factor * expf(act_at(x, target) - shift) - scale;
    for (int64_t i = 0; i < n; i += W)
        put_act(dx + i, factor * vf_exp(take_act(x + i, n - i) - shift), n - i);
    put_act(dx + target, vf_all(at_target), 1);
    if (n < columns) memset(dx + n, 0, (size_t)(columns - n) * sizeof *dx);
}

static void cross_entropy_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    float scale = *(const float *)c->in[3] / (float)type_rows(&c->in_type[0]);
    const float *lse = c->in[2];
    for (int64_t r = first; r < last; r++) grad_row(c, r, lse[r], scale, scale);
}

static enum status run_cross_entropy_grad(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 3, cross_entropy_grad_range);
}

/* --- both at once; scratch holds the losses of the rows --- */

static int64_t both_scratch(const struct kernel_call *c)
{
    return type_rows(&c->in_type[0]) * (int64_t)sizeof(float);
}

static void both_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = c->attr->loss.vocab;
    float scale = *(const float *)c->in[2] / (float)type_rows(&c->in_type[0]);
    for (int64_t r = first; r < last; r++) {
        const act *x = logits_row(c, r);
        float top = largest(x, n), sum = sum_of_exp(x, n, top);
        ((float *)c->scratch)[r] = top + logf(sum) - act_at(x, target_of(c, r));
        grad_row(c, r, top, scale / sum, scale);
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

static bool fits_cross_entropy(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "ai", "ff");
}
static bool fits_grad(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "aiff", "a");
}
static bool fits_both(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "aif", "af");
}

/* clang-format off */
const struct kernel ACT(loss_rows)[] = {
    {.op = OP_CROSS_ENTROPY,      .variant = ISA_NAME, .fits = fits_cross_entropy, .run = run_cross_entropy},
    {.op = OP_CROSS_ENTROPY_GRAD, .variant = ISA_NAME, .fits = fits_grad, .run = run_cross_entropy_grad},
    {.op = OP_CROSS_ENTROPY_BOTH, .variant = ISA_NAME, .fits = fits_both, .run = run_both,
     .scratch_bytes = both_scratch},
    {0},
};
/* clang-format on */
