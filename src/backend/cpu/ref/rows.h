/* rows.h - the reference: sums and maxima over rows and columns, softmax.
 * Included by ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_ROWS_H
#define BACKEND_CPU_REF_ROWS_H

#include "backend/cpu/ref/ref.h"

/* x (...,C) -> (...,1) */
static enum status run_sum_row(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *out = c->out[0];
    int64_t C = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++) {
        double sum = 0;
        for (int64_t i = 0; i < C; i++) sum += (double)x[row * C + i];
        out[row] = (real)sum;
    }
    return ST_OK;
}

/* x (...,C) -> (...,1) */
static enum status run_max_row(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *out = c->out[0];
    int64_t C = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++) {
        real max = x[row * C];
        for (int64_t i = 1; i < C; i++)
            if (x[row * C + i] > max || isnan(x[row * C + i])) max = x[row * C + i];
        out[row] = max;
    }
    return ST_OK;
}

/* x (...,trailing) -> (trailing) */
static enum status run_sum_leading(const struct kernel_call *c)
{
    const real *x = c->in[0];
    real *out = c->out[0];
    int64_t n = type_elements(&c->in_type[0]), trailing = type_elements(&c->out_type[0]);
    for (int64_t j = 0; j < trailing; j++) {
        double sum = 0;
        for (int64_t i = j; i < n; i += trailing) sum += (double)x[i];
        out[j] = (real)sum;
    }
    return ST_OK;
}

/* p[i] = exp(scale x[i]) / sum over j of exp(scale x[j]); p may be x. */
static void softmax_row(const real *x, real *p, int64_t n, double scale)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, scale * (double)x[i]);
    for (int64_t i = 0; i < n; i++) sum += exp(scale * (double)x[i] - max);
    for (int64_t i = 0; i < n; i++) p[i] = (real)(exp(scale * (double)x[i] - max) / sum);
}

static enum status run_softmax(const struct kernel_call *c)
{
    const real *x = c->in[0]; /* (...,C) */
    real *y = c->out[0];
    int64_t C = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++)
        softmax_row(x + row * C, y + row * C, C, 1);
    return ST_OK;
}

static enum status run_softmax_grad(const struct kernel_call *c)
{
    const real *dy = c->in[0], *y = c->in[1]; /* (...,C) */
    real *dx = c->out[0];
    int64_t C = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++) {
        double dot = 0;
        for (int64_t i = row * C; i < (row + 1) * C; i++) dot += (double)dy[i] * (double)y[i];
        for (int64_t i = row * C; i < (row + 1) * C; i++)
            dx[i] = (real)((double)y[i] * ((double)dy[i] - dot));
    }
    return ST_OK;
}

/* scores (B,H,T,T), step -> p = softmax(mask(scale scores)), and dropout(p) if there is dropout. */
static enum status run_score_softmax(const struct kernel_call *c)
{
    const real *scores = c->in[0];
    const int32_t *step = c->in[1];
    const struct dropout *drop = &c->attr->score.drop;
    real *p = c->out[0], *dropped = c->n_out > 1 ? c->out[1] : NULL;
    int64_t T = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++) {
        int64_t seen = c->attr->score.causal ? row % T + 1 : T; /* keys 0 ... seen-1 */
        softmax_row(scores + row * T, p + row * T, seen, c->attr->score.scale);
        for (int64_t k = seen; k < T; k++) p[row * T + k] = 0;
        for (int64_t k = 0; dropped && k < T; k++)
            dropped[row * T + k] =
                (real)((double)p[row * T + k] * keep_attention(drop, step, row / T, row % T, k));
    }
    return ST_OK;
}

/* dpd, p (B,H,T,T), step -> ds = scale p (dp - sum over the row of dp p), dp = dropout(dpd) */
static enum status run_score_softmax_grad(const struct kernel_call *c)
{
    const real *dpd = c->in[0], *p = c->in[1];
    const int32_t *step = c->in[2];
    const struct dropout *drop = &c->attr->score.drop;
    real *ds = c->out[0];
    int64_t T = type_columns(&c->in_type[0]);
    for (int64_t row = 0; row < type_rows(&c->in_type[0]); row++) {
        double dot = 0;
        for (int64_t k = 0; k < T; k++)
            dot += (double)dpd[row * T + k] * (double)p[row * T + k] *
                   keep_attention(drop, step, row / T, row % T, k);
        for (int64_t k = 0; k < T; k++) {
            double dp = (double)dpd[row * T + k] * keep_attention(drop, step, row / T, row % T, k);
            ds[row * T + k] = (real)(c->attr->score.scale * (double)p[row * T + k] * (dp - dot));
        }
    }
    return ST_OK;
}

const struct kernel REF(ref_rows)[] = {
    ROW(SUM_ROW, run_sum_row),
    ROW(MAX_ROW, run_max_row),
    ROW(SUM_LEADING, run_sum_leading),
    ROW(SOFTMAX, run_softmax),
    ROW(SOFTMAX_GRAD, run_softmax_grad),
    ROW_TYPES(SCORE_SOFTMAX, "ai", "aa", run_score_softmax),
    ROW_TYPES(SCORE_SOFTMAX_GRAD, "aai", "a", run_score_softmax_grad),
    {.run = NULL},
};

#endif
