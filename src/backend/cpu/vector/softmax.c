#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/dropout.h"
#include "base/rng.h"

/* y = softmax(scale * x) of the first n columns; y may be x. Exponentials are computed twice,
 * because storing them in y between the passes would round them to the type of y. */
INLINE void softmax_row(const act *x, act *y, int64_t n, float scale)
{
    vf max = vf_all(-INFINITY), sum = {0};
    int64_t i = 0;
    for (; i + W <= n; i += W) max = vf_max(max, load_full_act(x + i) * scale);
    if (i < n) {
        vf last = load_act(x + i, n - i) * scale;
        max = vf_max(max, vf_select(vf_lanes(n - i), last, vf_all(-INFINITY)));
    }
    float row_max = vf_max_lane(max);
    for (i = 0; i + W <= n; i += W) sum += vf_exp(load_full_act(x + i) * scale - row_max);
    if (i < n) {
        vf e = vf_exp(load_act(x + i, n - i) * scale - row_max);
        sum += vf_select(vf_lanes(n - i), e, (vf){0});
    }
    float inverse = 1.0f / vf_sum(sum);
    for (i = 0; i < n; i += W)
        store_act(y + i, vf_exp(load_act(x + i, n - i) * scale - row_max) * inverse, n - i);
}

/* dx = scale * y * (d - sum(d * y)) for the first n columns, where d = dy * dscale. */
INLINE void softmax_grad_row(const act *dy, const act *y, act *dx, int64_t n, float scale,
                             float dscale)
{
    vf sum = {0};
    for (int64_t i = 0; i < n; i += W) sum += load_act(dy + i, n - i) * load_act(y + i, n - i);
    float dot = vf_sum(sum) * dscale;
    for (int64_t i = 0; i < n; i += W) {
        vf d = load_act(dy + i, n - i) * dscale - dot;
        store_act(dx + i, scale * load_act(y + i, n - i) * d, n - i);
    }
}

static void softmax_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const act *x = c->in[0];
    act *y = c->out[0];
    for (int64_t r = first; r < last; r++) softmax_row(x + r * n, y + r * n, n, 1.0f);
}
RUN_ROWS(softmax, 5)

static void softmax_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_columns(&c->in_type[0]);
    const act *dy = c->in[0], *y = c->in[1];
    act *dx = c->out[0];
    for (int64_t r = first; r < last; r++)
        softmax_grad_row(dy + r * n, y + r * n, dx + r * n, n, 1.0f, 1.0f);
}
RUN_ROWS(softmax_grad, 3)

/* --- attention scores (B,H,T,T), in strips of 16 rows of one head, as in the dropout mask --- */

struct strip {
    int64_t T, bh, q16, rows, origin; /* origin: index of the first element */
};

INLINE struct strip strip_of(const struct kernel_call *c, int64_t item)
{
    int64_t T = type_columns(&c->in_type[0]), strips = ceil_div(T, 16);
    int64_t bh = item / strips, q16 = item % strips;
    return (struct strip){T, bh, q16, min_i64(16, T - q16 * 16), (bh * T + q16 * 16) * T};
}

/* The number of unmasked columns in row q of a strip. */
INLINE int64_t open_columns(const struct kernel_call *c, const struct strip *s, int64_t q)
{
    return c->attr->score.causal ? s->q16 * 16 + q + 1 : s->T;
}

/* y = dropout(x) in the unmasked columns. If `scaled` is false, kept elements are unchanged, so
 * storing y in bf16 does not round them. */
INLINE void drop_strip(const struct kernel_call *c, const struct strip *s, uint32_t step,
                       const act *x, act *y, bool scaled)
{
    float factor[16 * 16];
    int64_t open = min_i64(open_columns(c, s, s->rows - 1), s->T);
    for (int64_t k = 0; k < open; k += 16) {
        VEC(dropout_block)(factor, &c->attr->score.drop, step, s->bh, s->q16, k / 16);
        for (int64_t q = 0; q < s->rows; q++) {
            int64_t n = min_i64(16, open_columns(c, s, q) - k), at = q * s->T + k;
            n = min_i64(n, s->T - k);
            for (int64_t i = 0; i < n; i += W) {
                vf f = vf_load(factor + q * 16 + i);
                if (!scaled) f = vf_select(f > 0.0f, vf_all(1.0f), (vf){0});
                store_act(y + at + i, load_act(x + at + i, n - i) * f, n - i);
            }
        }
    }
}

/* Sets masked columns to zero. */
static void clear_masked(const struct kernel_call *c, const struct strip *s, act *y)
{
    for (int64_t q = 0; q < s->rows; q++) {
        int64_t open = open_columns(c, s, q);
        memset(y + q * s->T + open, 0, (size_t)(s->T - open) * sizeof *y);
    }
}

static void score_softmax_strips(const struct kernel_call *c, int64_t first, int64_t last)
{
    for (int64_t item = first; item < last; item++) {
        struct strip s = strip_of(c, item);
        const act *x = (const act *)c->in[0] + s.origin;
        act *p = (act *)c->out[0] + s.origin;
        for (int64_t q = 0; q < s.rows; q++)
            softmax_row(x + q * s.T, p + q * s.T, open_columns(c, &s, q),
                        (float)c->attr->score.scale);
        clear_masked(c, &s, p);
        if (c->n_out < 2) continue;
        act *dropped = (act *)c->out[1] + s.origin;
        drop_strip(c, &s, step_of(c->in[1]), p, dropped, true);
        clear_masked(c, &s, dropped);
    }
}

static enum status over_strips(const struct kernel_call *c, range_fn fn)
{
    int64_t T = type_columns(&c->in_type[0]);
    parallel_ranges(c, type_rows(&c->in_type[0]) / T * ceil_div(T, 16), 1, 4 * 16 * T, fn);
    return ST_OK;
}

static enum status run_score_softmax(const struct kernel_call *c)
{
    return over_strips(c, score_softmax_strips);
}

static void score_softmax_grad_strips(const struct kernel_call *c, int64_t first, int64_t last)
{
    for (int64_t item = first; item < last; item++) {
        struct strip s = strip_of(c, item);
        const act *dp = (const act *)c->in[0] + s.origin, *p = (const act *)c->in[1] + s.origin;
        act *dx = (act *)c->out[0] + s.origin;
        const struct dropout *drop = &c->attr->score.drop;
        if (drop->threshold > 0) {
            drop_strip(c, &s, step_of(c->in[2]), dp, dx, false);
            dp = dx;
        }
        float dscale = drop->threshold > 0 ? dropout_scale(drop->threshold) : 1.0f;
        for (int64_t q = 0; q < s.rows; q++)
            softmax_grad_row(dp + q * s.T, p + q * s.T, dx + q * s.T, open_columns(c, &s, q),
                             (float)c->attr->score.scale, dscale);
        clear_masked(c, &s, dx);
    }
}

static enum status run_score_softmax_grad(const struct kernel_call *c)
{
    return over_strips(c, score_softmax_grad_strips);
}

const struct kernel ACT(softmax_rows)[] = {
    ROW(SOFTMAX, "aa", "a", run_softmax),
    ROW(SOFTMAX_GRAD, "aa", "a", run_softmax_grad),
    ROW(SCORE_SOFTMAX, "ai", "aa", run_score_softmax),
    ROW(SCORE_SOFTMAX_GRAD, "aai", "a", run_score_softmax_grad),
    {0},
};
