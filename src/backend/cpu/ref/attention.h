/* attention.h - the reference: attention over packed q, k, v. Included by ref_f32.c and ref_f64.c.
 *
 * A row of qkv (B,T,(H+2*KV)*D) holds H query heads, KV key heads and KV value heads of D
 * elements each; query head h uses key head h / (H/KV). p(q,k) = exp(scale q.k - lse(q)) for the
 * keys that the mask lets q see; dropout multiplies p by keep(q,k). scale = 1/sqrt(D), or 1 if the
 * attribute `unscaled` is set (ATTENTION_CACHED ignores `unscaled`). */
#ifndef BACKEND_CPU_REF_ATTENTION_H
#define BACKEND_CPU_REF_ATTENTION_H

#include "backend/cpu/ref/ref.h"

struct packed {
    int64_t B, T, H, KV, D, row; /* row: elements of one row of qkv */
};

static struct packed packed_of(const struct type *qkv, const union attr *attr)
{
    int64_t H = attr->attention.heads, KV = attention_kv_heads(attr),
            D = qkv->dim[2] / (H + 2 * KV);
    return (struct packed){qkv->dim[0], qkv->dim[1], H, KV, D, qkv->dim[2]};
}

/* In a row of qkv: the offset of the key head that query head h uses. Its value head is KV*D
 * elements further. */
static int64_t keys_of(const struct packed *s, int64_t h)
{
    return (s->H + h / (s->H / s->KV)) * s->D;
}

static double dot_product(const real *a, const real *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Replaces n scores s by exp(s - lse) and returns lse, the log-sum-exp of the scores. */
static double softmax_scores(double *s, int64_t n)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++) max = fmax(max, s[k]);
    for (int64_t k = 0; k < n; k++) sum += exp(s[k] - max);
    double lse = max + log(sum);
    for (int64_t k = 0; k < n; k++) s[k] = exp(s[k] - lse);
    return lse;
}

static int64_t scratch_attention(const struct kernel *, const struct kernel_call *c)
{
    return c->in_type[0].dim[1] * (int64_t)sizeof(double);
}

/* qkv, step -> y (B,T,C), lse (B,H,T) */
static enum status run_attention(const struct kernel_call *c)
{
    const struct packed s = packed_of(&c->in_type[0], c->attr);
    const real *qkv = c->in[0];
    const int32_t *step = c->in[1];
    real *y = c->out[0], *lse = c->out[1];
    int64_t T = s.T, D = s.D, C = s.H * D;
    double *p = c->scratch; /* (T): one row of probabilities */
    double divisor = attention_divisor(c->attr, D);
    for (int64_t bh = 0; bh < s.B * s.H; bh++) {
        int64_t b = bh / s.H, h = bh % s.H;
        const real *rows = qkv + b * T * s.row, *keys = rows + keys_of(&s, h);
        const real *values = keys + s.KV * D;
        for (int64_t q = 0; q < T; q++) {
            int64_t seen = c->attr->attention.causal ? q + 1 : T;
            for (int64_t k = 0; k < seen; k++)
                p[k] = dot_product(rows + q * s.row + h * D, keys + k * s.row, D) / divisor;
            lse[bh * T + q] = (real)softmax_scores(p, seen);
            for (int64_t k = 0; k < seen; k++)
                p[k] *= keep_attention(&c->attr->attention.drop, step, bh, q, k);
            for (int64_t d = 0; d < D; d++) {
                double sum = 0;
                for (int64_t k = 0; k < seen; k++) sum += p[k] * (double)values[k * s.row + d];
                y[(b * T + q) * C + h * D + d] = (real)sum;
            }
        }
    }
    return ST_OK;
}

static int64_t scratch_attention_grad(const struct kernel *, const struct kernel_call *c)
{
    const struct packed s = packed_of(&c->in_type[1], c->attr);
    return (2 * s.T + 3 * s.T * s.D) * (int64_t)sizeof(double);
}

/* p, ds (T): one row of scores. dq (T,D): the gradient of one query head. dk, dv (T,D): sums over
 * the query heads that share a key head. */
struct head_gradients {
    double *p, *ds, *dq, *dk, *dv;
};

/* Adds the contribution of query row q of head bh to the gradients. */
static void add_query(const struct kernel_call *c, const struct packed *s, int64_t bh, int64_t q,
                      const struct head_gradients *g)
{
    const int32_t *step = c->in[4];
    int64_t b = bh / s->H, h = bh % s->H, T = s->T, D = s->D;
    int64_t seen = c->attr->attention.causal ? q + 1 : T;
    const real *rows = (const real *)c->in[1] + b * T * s->row, *query = rows + q * s->row + h * D;
    const real *keys = rows + keys_of(s, h), *values = keys + s->KV * D;
    const real *dy = (const real *)c->in[0] + ((b * T + q) * s->H + h) * D;
    double scale = 1 / attention_divisor(c->attr, D);
    double lse = (double)((const real *)c->in[3])[bh * T + q];
    double row_sum = 0;
    for (int64_t k = 0; k < seen; k++) {
        double keep = keep_attention(&c->attr->attention.drop, step, bh, q, k);
        g->p[k] = exp(scale * dot_product(query, keys + k * s->row, D) - lse);
        g->ds[k] = keep * dot_product(dy, values + k * s->row, D); /* dp for now */
        row_sum += g->p[k] * g->ds[k];
        for (int64_t d = 0; d < D; d++) g->dv[k * D + d] += g->p[k] * keep * (double)dy[d];
    }
    for (int64_t k = 0; k < seen; k++) {
        g->ds[k] = scale * g->p[k] * (g->ds[k] - row_sum);
        for (int64_t d = 0; d < D; d++) {
            g->dq[q * D + d] += g->ds[k] * (double)keys[k * s->row + d];
            g->dk[k * D + d] += g->ds[k] * (double)query[d];
        }
    }
}

static void write_head(real *to, int64_t row, const double *from, int64_t T, int64_t D)
{
    for (int64_t t = 0; t < T; t++)
        for (int64_t d = 0; d < D; d++) to[t * row + d] = (real)from[t * D + d];
}

/* dy (B,T,C), qkv, y (B,T,C), lse (B,H,T), step -> dqkv. Other kernels compute the row sums of
 * dp p as rowsum(dy y); here they are summed directly and y is not used. */
static enum status run_attention_grad(const struct kernel_call *c)
{
    const struct packed s = packed_of(&c->in_type[1], c->attr);
    int64_t T = s.T, D = s.D, group = s.H / s.KV;
    struct head_gradients g = {.p = c->scratch};
    g.ds = g.p + T, g.dq = g.ds + T, g.dk = g.dq + T * D, g.dv = g.dk + T * D;
    for (int64_t bh = 0; bh < s.B * s.H; bh++) {
        int64_t h = bh % s.H;
        bool first = h % group == 0, last = h % group == group - 1;
        for (int64_t i = 0; i < (first ? 3 : 1) * T * D; i++)
            g.dq[i] = 0; /* dk and dv follow dq in memory */
        for (int64_t q = 0; q < T; q++) add_query(c, &s, bh, q, &g);
        real *rows = (real *)c->out[0] + bh / s.H * T * s.row;
        write_head(rows + h * D, s.row, g.dq, T, D);
        if (!last) continue;
        write_head(rows + keys_of(&s, h), s.row, g.dk, T, D);
        write_head(rows + keys_of(&s, h) + s.KV * D, s.row, g.dv, T, D);
    }
    return ST_OK;
}

static int64_t scratch_attention_cached(const struct kernel *, const struct kernel_call *c)
{
    return c->in_type[0].dim[2] * (int64_t)sizeof(double);
}

/* cache (2,B,Tmax,KV*D), qkv (B,1,...), position (1) -> the cache with k and v stored at the
 * position, and y (B,1,C): attention over all positions up to this one */
static enum status run_attention_cached(const struct kernel_call *c)
{
    const struct packed s = packed_of(&c->in_type[1], c->attr);
    const int32_t *position = c->in[2];
    int64_t T_max = c->in_type[0].dim[2], H = s.H, D = s.D, kv_columns = s.KV * D;
    real *keys = c->out[0], *values = keys + s.B * T_max * kv_columns, *y = c->out[1];
    double *p = c->scratch; /* (Tmax) */
    TRY(check_ids(position, 1, T_max));
    for (int64_t b = 0; b < s.B; b++) {
        const real *qkv = (const real *)c->in[1] + b * s.row;
        int64_t now = (b * T_max + *position) * kv_columns;
        memcpy(keys + now, qkv + H * D, (size_t)kv_columns * sizeof(real));
        memcpy(values + now, qkv + H * D + kv_columns, (size_t)kv_columns * sizeof(real));
        for (int64_t h = 0; h < H; h++) {
            int64_t first = b * T_max * kv_columns + keys_of(&s, h) - H * D;
            for (int64_t k = 0; k <= *position; k++)
                p[k] = dot_product(qkv + h * D, keys + first + k * kv_columns, D) / sqrt((double)D);
            softmax_scores(p, *position + 1);
            for (int64_t d = 0; d < D; d++) {
                double sum = 0;
                for (int64_t k = 0; k <= *position; k++)
                    sum += p[k] * (double)values[first + k * kv_columns + d];
                y[(b * H + h) * D + d] = (real)sum;
            }
        }
    }
    return ST_OK;
}

const struct kernel REF(ref_attention)[] = {
    ROW_TYPES(ATTENTION, "ai", "aa", run_attention, .scratch_bytes = scratch_attention),
    ROW_TYPES(ATTENTION_GRAD, "aaaai", "a", run_attention_grad,
              .scratch_bytes = scratch_attention_grad),
    ROW_TYPES(ATTENTION_CACHED, "aai", "aa", run_attention_cached,
              .scratch_bytes = scratch_attention_cached),
    {.run = NULL},
};

#endif
