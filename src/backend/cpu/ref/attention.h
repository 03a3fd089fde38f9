/* attention.h - the reference: attention over packed q, k, v. A text of ref_f32.c and ref_f64.c.
 *
 * Of head h at time t, q, k and v are D elements each at columns hD, C + hD and 2C + hD of row t of
 * qkv (B,T,3C), C = H D. p(q,k) = exp(scale q.k - lse(q)) over the keys that q may see, scale =
 * 1/sqrt(D); dropout multiplies p by keep(q,k). */
#ifndef BACKEND_CPU_REF_ATTENTION_H
#define BACKEND_CPU_REF_ATTENTION_H

#include "backend/cpu/ref/ref.h"

static double dot_product(const real *a, const real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Turns n scores into the exponentials of them less their log-sum-exp, which is returned. */
static double softmax_scores(double *s, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) max = fmax(max, s[k]);
    for (int64_t k = 0; k < n; k++) sum += exp(s[k] - max);
    double lse = max + log(sum);
    for (int64_t k = 0; k < n; k++) s[k] = exp(s[k] - lse);
    return lse;
}

static int64_t scratch_attention(const struct kernel *row, const struct kernel_call *c)
{
    (void)row;
    return c->in_type[0].dim[1] * (int64_t)sizeof(double);
}

/* qkv (B,T,3C), step -> y (B,T,C), lse (B,H,T) */
static enum status run_attention(const struct kernel_call *c)
{
    const real *qkv = c->in[0];
    const int32_t *step = c->in[1];
    real *y = c->out[0], *lse = c->out[1];
    int64_t B = c->in_type[0].dim[0], T = c->in_type[0].dim[1], C = c->in_type[0].dim[2] / 3;
    int64_t H = c->attr->attention.heads, D = C / H;
    double *p = c->scratch; /* (T): one row of the matrix */
    for (int64_t bh = 0; bh < B * H; bh++) {
        const real *head = qkv + bh / H * T * 3 * C + bh % H * D; /* row t is head + t * 3C */
        for (int64_t q = 0; q < T; q++) {
            int64_t seen = c->attr->attention.causal ? q + 1 : T;
            for (int64_t k = 0; k < seen; k++)
                p[k] = dot_product(head + q * 3 * C, head + k * 3 * C + C, D) / sqrt((double)D);
            lse[bh * T + q] = (real)softmax_scores(p, seen);
            for (int64_t k = 0; k < seen; k++)
                p[k] *= keep_attention(&c->attr->attention.drop, step, bh, q, k);
            for (int64_t d = 0; d < D; d++) {
                double sum = 0;
                for (int64_t k = 0; k < seen; k++)
                    sum += p[k] * (double)head[k * 3 * C + 2 * C + d];
                y[(bh / H * T + q) * C + bh % H * D + d] = (real)sum;
            }
        }
    }
    return ST_OK;
}

static int64_t scratch_attention_grad(const struct kernel *row, const struct kernel_call *c)
{
    (void)row;
    int64_t T = c->in_type[1].dim[1], D = c->in_type[1].dim[2] / 3 / c->attr->attention.heads;
    return (2 * T + 3 * T * D) * (int64_t)sizeof(double);
}

/* dy (B,T,C), qkv (B,T,3C), y (B,T,C), lse (B,H,T), step -> dqkv (B,T,3C). y is there for kernels
 * that take the row sums of dp p from dy y; here they are summed. */
static enum status run_attention_grad(const struct kernel_call *c)
{
    const real *dy = c->in[0], *qkv = c->in[1], *lse = c->in[3];
    const int32_t *step = c->in[4];
    real *dqkv = c->out[0];
    int64_t B = c->in_type[1].dim[0], T = c->in_type[1].dim[1], C = c->in_type[1].dim[2] / 3;
    int64_t H = c->attr->attention.heads, D = C / H;
    double scale = 1 / sqrt((double)D);
    double *p = c->scratch, *ds = p + T;                     /* (T): a row */
    double *dq = ds + T, *dk = dq + T * D, *dv = dk + T * D; /* (T,D): one head */
    for (int64_t bh = 0; bh < B * H; bh++) {
        const real *head = qkv + bh / H * T * 3 * C + bh % H * D;
        for (int64_t i = 0; i < 3 * T * D; i++) dq[i] = 0; /* and dk, dv behind it */
        for (int64_t q = 0; q < T; q++) {
            int64_t seen = c->attr->attention.causal ? q + 1 : T;
            const real *dy_row = dy + (bh / H * T + q) * C + bh % H * D;
            double row_sum = 0;
            for (int64_t k = 0; k < seen; k++) {
                double keep = keep_attention(&c->attr->attention.drop, step, bh, q, k);
                double score = scale * dot_product(head + q * 3 * C, head + k * 3 * C + C, D);
                p[k] = exp(score - (double)lse[bh * T + q]);
                ds[k] = keep * dot_product(dy_row, head + k * 3 * C + 2 * C, D); /* dp so far */
                row_sum += p[k] * ds[k];
                for (int64_t d = 0; d < D; d++) dv[k * D + d] += p[k] * keep * (double)dy_row[d];
            }
            for (int64_t k = 0; k < seen; k++) {
                ds[k] = scale * p[k] * (ds[k] - row_sum);
                for (int64_t d = 0; d < D; d++) {
                    dq[q * D + d] += ds[k] * (double)head[k * 3 * C + C + d];
                    dk[k * D + d] += ds[k] * (double)head[q * 3 * C + d];
                }
            }
        }
        real *out = dqkv + bh / H * T * 3 * C + bh % H * D;
        for (int64_t t = 0; t < T; t++)
            for (int64_t d = 0; d < D; d++) {
                out[t * 3 * C + d] = (real)dq[t * D + d];
                out[t * 3 * C + C + d] = (real)dk[t * D + d];
                out[t * 3 * C + 2 * C + d] = (real)dv[t * D + d];
            }
    }
    return ST_OK;
}

static int64_t scratch_attention_cached(const struct kernel *row, const struct kernel_call *c)
{
    (void)row;
    return c->in_type[0].dim[2] * (int64_t)sizeof(double);
}

/* cache (2,B,Tmax,C), qkv (B,1,3C), position (1) -> the cache with k and v at the position, and
 * y (B,1,C): attention to the positions up to it */
static enum status run_attention_cached(const struct kernel_call *c)
{
    const real *qkv = c->in[1];
    const int32_t *position = c->in[2];
    int64_t B = c->in_type[0].dim[1], T_max = c->in_type[0].dim[2], C = c->in_type[0].dim[3];
    int64_t H = c->attr->attention.heads, D = C / H;
    real *keys = c->out[0], *values = keys + B * T_max * C, *y = c->out[1];
    double *p = c->scratch; /* (Tmax) */
    TRY(check_ids(position, 1, T_max));
    for (int64_t b = 0; b < B; b++) {
        int64_t now = (b * T_max + *position) * C;
        memcpy(keys + now, qkv + b * 3 * C + C, (size_t)C * sizeof(real));
        memcpy(values + now, qkv + b * 3 * C + 2 * C, (size_t)C * sizeof(real));
        for (int64_t h = 0; h < H; h++) {
            const real *q = qkv + b * 3 * C + h * D;
            const real *k_head = keys + b * T_max * C + h * D,
                       *v_head = values + b * T_max * C + h * D;
            for (int64_t k = 0; k <= *position; k++)
                p[k] = dot_product(q, k_head + k * C, D) / sqrt((double)D);
            softmax_scores(p, *position + 1);
            for (int64_t d = 0; d < D; d++) {
                double sum = 0;
                for (int64_t k = 0; k <= *position; k++) sum += p[k] * (double)v_head[k * C + d];
                y[b * C + h * D + d] = (real)sum;
            }
        }
    }
    return ST_OK;
}

const struct kernel REF(ref_attention)[] = {
    {.op = OP_ATTENTION,
     .variant = "ref",
     .fits = fits_int_1,
     .scratch_bytes = scratch_attention,
     .run = run_attention},
    {.op = OP_ATTENTION_GRAD,
     .variant = "ref",
     .fits = fits_int_4,
     .scratch_bytes = scratch_attention_grad,
     .run = run_attention_grad},
    {.op = OP_ATTENTION_CACHED,
     .variant = "ref",
     .fits = fits_int_2,
     .scratch_bytes = scratch_attention_cached,
     .run = run_attention_cached},
    {.run = NULL},
};

#endif
