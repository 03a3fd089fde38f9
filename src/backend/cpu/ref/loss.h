/* loss.h - the reference: cross-entropy and sums of squares. Included by ref_f32.c and ref_f64.c.
 *
 * Logits have N rows, one for each prediction, and V columns; columns from `vocab` on are
 * padding. */
#ifndef BACKEND_CPU_REF_LOSS_H
#define BACKEND_CPU_REF_LOSS_H

#include "backend/cpu/ref/ref.h"

/* Returns log sum exp x. *ret_loss is the loss of the target; log1p keeps it accurate when it is
 * close to 0. */
static double log_sum_exp(const real *x, int64_t n, int32_t target, double *ret_loss)
{
    double max = -INFINITY, others = 0;
    for (int64_t i = 0; i < n; i++) max = fmax(max, (double)x[i]);
    for (int64_t i = 0; i < n; i++) others += i == target ? 0 : exp((double)x[i] - max);
    double below = max - (double)x[target], own = exp(-below);
    *ret_loss = log1p(own - 1 + others) + below;
    return max + log(own + others);
}

/* d = (softmax - one-hot) factor, 0 in padding columns; d may be x. */
static void loss_grad_row(const struct kernel_call *c, const real *x, real *d, int32_t target,
                          double lse, double factor)
{
    int64_t vocab = c->attr->loss.vocab;
    for (int64_t v = 0; v < type_columns(&c->in_type[0]); v++) {
        double p = v < vocab ? exp((double)x[v] - lse) : 0;
        d[v] = (real)((v == target ? p - 1 : p) * factor);
    }
}

/* logits (...,V), targets (...) -> loss (1), lse (...) */
static enum status run_cross_entropy(const struct kernel_call *c)
{
    const real *logits = c->in[0];
    const int32_t *targets = c->in[1];
    real *loss = c->out[0], *lse = c->out[1];
    int64_t N = type_rows(&c->in_type[0]), V = type_columns(&c->in_type[0]);
    TRY(check_ids(targets, N, c->attr->loss.vocab));
    double sum = 0, each;
    for (int64_t row = 0; row < N; row++) {
        lse[row] = (real)log_sum_exp(logits + row * V, c->attr->loss.vocab, targets[row], &each);
        sum += each;
    }
    *loss = (real)(sum / (double)N);
    return ST_OK;
}

/* logits (...,V), targets (...), lse (...), dloss (1) -> dlogits (...,V) */
static enum status run_cross_entropy_grad(const struct kernel_call *c)
{
    const real *logits = c->in[0], *lse = c->in[2], *dloss = c->in[3];
    const int32_t *targets = c->in[1];
    real *dlogits = c->out[0];
    int64_t N = type_rows(&c->in_type[0]), V = type_columns(&c->in_type[0]);
    TRY(check_ids(targets, N, c->attr->loss.vocab));
    for (int64_t row = 0; row < N; row++)
        loss_grad_row(c, logits + row * V, dlogits + row * V, targets[row], (double)lse[row],
                      (double)*dloss / (double)N);
    return ST_OK;
}

/* logits (...,V), targets (...), dloss (1) -> dlogits (...,V), loss (1) */
static enum status run_cross_entropy_both(const struct kernel_call *c)
{
    const real *logits = c->in[0], *dloss = c->in[2];
    const int32_t *targets = c->in[1];
    real *dlogits = c->out[0], *loss = c->out[1];
    int64_t N = type_rows(&c->in_type[0]), V = type_columns(&c->in_type[0]);
    TRY(check_ids(targets, N, c->attr->loss.vocab));
    double sum = 0, each;
    for (int64_t row = 0; row < N; row++) {
        double lse = log_sum_exp(logits + row * V, c->attr->loss.vocab, targets[row], &each);
        sum += each;
        loss_grad_row(c, logits + row * V, dlogits + row * V, targets[row], lse,
                      (double)*dloss / (double)N);
    }
    *loss = (real)(sum / (double)N);
    return ST_OK;
}

static enum status run_sum_squares(const struct kernel_call *c)
{
    const real *x = c->in[0];
    double sum = 0;
    for (int64_t i = 0; i < type_elements(&c->in_type[0]); i++) sum += (double)x[i] * (double)x[i];
    *(real *)c->out[0] = (real)sum;
    return ST_OK;
}

const struct kernel REF(ref_loss)[] = {
    ROW_TYPES(CROSS_ENTROPY, "ai", "aa", run_cross_entropy),
    ROW_TYPES(CROSS_ENTROPY_GRAD, "aiaa", "a", run_cross_entropy_grad),
    ROW_TYPES(CROSS_ENTROPY_BOTH, "aia", "aa", run_cross_entropy_both),
    ROW(SUM_SQUARES, run_sum_squares),
    {.run = NULL},
};

#endif
