/* Layer norms: y = (x - mean) rstd w + b over rows of n, rstd = 1 / sqrt(var + eps).
 *
 * The gradient, with h = (x - mean) rstd, g = dy w: dx = rstd (g - mean(g) - h mean(g h)), dw the sum
 * of dy h over the rows, db that of dy. The sums over rows are taken in parts that the shape fixes. */
#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/dropout.h"

/* One row; b may be NULL. */
INLINE void norm_row(const act *x, const float *w, const float *b, act *y, float *mean, float *rstd,
                     int64_t n, float eps)
{
    vf sum = {0}, squares = {0};
    for (int64_t i = 0; i < n; i += W) sum += take_act(x + i, n - i);
    float m = vf_sum(sum) / (float)n;
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        vf a = load_act(x + i) - m;
        squares += a * a;
    }
    if (i < n) {
        vf a = vf_select(vf_lanes(n - i), take_act(x + i, n - i) - m, (vf){0});
        squares += a * a;
    }
    float r = 1.0f / sqrtf(vf_sum(squares) / (float)n + eps);
    for (i = 0; i < n; i += W) {
        vf a = (take_act(x + i, n - i) - m) * r * take(w + i, n - i);
        put_act(y + i, b ? a + take(b + i, n - i) : a, n - i);
    }
    *mean = m;
    *rstd = r;
}

static void layernorm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const act *x = c->in[0];
    const float *w = c->in[1], *b = c->n_in > 2 ? c->in[2] : NULL;
    act *y = c->out[0];
    float *mean = c->out[1], *rstd = c->out[2], eps = (float)c->attr->norm.eps;
    for (int64_t r = first; r < last; r++)
        norm_row(x + r * n, w, b, y + r * n, mean + r, rstd + r, n, eps);
}

static enum status run_layernorm(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 3, layernorm_range);
}

INLINE void add_run(const act *a, const act *b, const float *factor, act *s, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) {
        vf branch = take_act(b + i, n - i);
        if (factor) branch *= take(factor + i, n - i);
        put_act(s + i, take_act(a + i, n - i) + branch, n - i);
    }
}

/* s = a + b, where b is dropped out if the threshold is not 0; `first` is the element of column 0. */
INLINE void add_row(const act *a, const act *b, act *s, int64_t n, const struct dropout *d,
                    uint32_t step, struct dropout_run *run, int64_t first)
{
    if (d->threshold == 0) add_run(a, b, NULL, s, n);
    for (int64_t at = 0, count; d->threshold > 0 && at < n; at += count) {
        const float *factor = VEC(dropout_at)(run, d, step, first + at, &count);
        add_run(a + at, b + at, factor, s + at, at_most(count, n - at));
    }
}

static void add_layernorm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const act *a = c->in[0], *branch = c->in[1];
    const float *w = c->in[3], *bias = c->n_in > 4 ? c->in[4] : NULL;
    act *s = c->out[0], *y = c->out[1];
    float *mean = c->out[2], *rstd = c->out[3];
    float eps = (float)c->attr->norm.eps;
    uint32_t step = step_of(c->in[2]);
    struct dropout_run run = {.first = -1};
    for (int64_t r = first; r < last; r++) {
        add_row(a + r * n, branch + r * n, s + r * n, n, &c->attr->norm.drop, step, &run, r * n);
        norm_row(s + r * n, w, bias, y + r * n, mean + r, rstd + r, n, eps);
    }
}

static enum status run_add_layernorm(const struct kernel_call *c)
{
    return VEC(over_rows)(c, c->attr->norm.drop.threshold ? 6 : 4, add_layernorm_range);
}

/* --- gradients --- */

/* The inputs of LAYERNORM_GRAD; those of LAYERNORM_GRAD_ADD are one later, after the gradient that
 * is added. */
struct grad_in {
    const act *add, *dy, *x;
    const float *w, *mean, *rstd;
};

INLINE struct grad_in grad_in(const struct kernel_call *c)
{
    int k = c->n_in - 5;
    return (struct grad_in){k ? c->in[0] : NULL, c->in[k],     c->in[k + 1],
                            c->in[k + 2],        c->in[k + 3], c->in[k + 4]};
}

/* One row, n columns; adds to the sums dw and db. */
INLINE void grad_row(const struct grad_in *in, int64_t row, int64_t n, act *dx, float *dw,
                     float *db)
{
    const act *dy = in->dy + row * n, *x = in->x + row * n;
    const float m = in->mean[row], r = in->rstd[row];
    vf sum = {0}, products = {0};
    for (int64_t i = 0; i < n; i += W) {
        vf d = take_act(dy + i, n - i), h = (take_act(x + i, n - i) - m) * r,
           g = d * take(in->w + i, n - i);
        sum += g;
        products += g * h;
        put(dw + i, take(dw + i, n - i) + d * h, n - i);
        put(db + i, take(db + i, n - i) + d, n - i);
    }
    float mean_g = vf_sum(sum) / (float)n, mean_gh = vf_sum(products) / (float)n;
    for (int64_t i = 0; i < n; i += W) {
        vf h = (take_act(x + i, n - i) - m) * r,
           g = take_act(dy + i, n - i) * take(in->w + i, n - i);
        vf a = r * (g - mean_g - h * mean_gh);
        if (in->add) a += take_act(in->add + row * n + i, n - i);
        put_act(dx + row * n + i, a, n - i);
    }
}

enum { LEAST_ROWS = 16 }; /* of a part */

static int64_t grad_scratch(const struct kernel_call *c)
{
    const struct type *x = &c->in_type[0];
    return part_count(type_rows(x), LEAST_ROWS) * 2 * type_columns(x) * (int64_t)sizeof(float);
}

static void grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    int64_t parts = part_count(rows, LEAST_ROWS);
    const struct grad_in in = grad_in(c);
    for (int64_t k = first; k < last; k++) {
        float *dw = (float *)c->scratch + k * 2 * n, *db = dw + n;
        memset(dw, 0, (size_t)(2 * n) * sizeof *dw);
        int64_t end = part_begin(rows, parts, k + 1);
        for (int64_t row = part_begin(rows, parts, k); row < end; row++)
            grad_row(&in, row, n, c->out[0], dw, db);
    }
}

static void join_parts_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    int64_t parts = part_count(type_rows(&c->in_type[0]), LEAST_ROWS);
    for (int i = 0; i < (c->attr->norm.bias ? 2 : 1); i++) {
        const float *part = (const float *)c->scratch + i * n;
        float *y = c->out[1 + i];
        for (int64_t at = first; at < last; at += W) {
            vf sum = {0};
            for (int64_t k = 0; k < parts; k++) sum += take(part + k * 2 * n + at, last - at);
            put(y + at, sum, last - at);
        }
    }
}

static enum status run_grad(const struct kernel_call *c)
{
    int64_t n = type_columns(&c->in_type[0]), rows = type_rows(&c->in_type[0]);
    int64_t parts = part_count(rows, LEAST_ROWS);
    parallel_ranges(c, parts, 1, 8 * n * (rows / parts), grad_range);
    parallel_ranges(c, n, 64, parts, join_parts_range);
    return ST_OK;
}

static bool fits_layernorm(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "aff", "aff");
}
static bool fits_add_layernorm(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "aaiff", "aaff");
}
static bool fits_grad(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, c->n_in == 5 ? "aafff" : "aaafff", "aff");
}

/* clang-format off */
const struct kernel ACT(norm_rows)[] = {
    {.op = OP_LAYERNORM,          .variant = ISA_NAME, .fits = fits_layernorm, .run = run_layernorm},
    {.op = OP_ADD_LAYERNORM,      .variant = ISA_NAME, .fits = fits_add_layernorm, .run = run_add_layernorm},
    {.op = OP_LAYERNORM_GRAD,     .variant = ISA_NAME, .fits = fits_grad, .run = run_grad,
     .scratch_bytes = grad_scratch},
    {.op = OP_LAYERNORM_GRAD_ADD, .variant = ISA_NAME, .fits = fits_grad, .run = run_grad,
     .scratch_bytes = grad_scratch},
    {0},
};
/* clang-format on */
