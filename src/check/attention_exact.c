#include "check/attention_exact.h"

#include "backend/backend.h"
#include "base/arena.h"
#include "check/check.h"
#include "check/reference.h"
#include "plan/plan.h"

#include <math.h>
#include <string.h>

/* WORK limits the product rows x T x D, which costs twelve FLOPs in double precision per unit. */
enum { WORK = 1 << 25, LEAST_ROWS = 8, APART = 7 };

/* --- which rows ------------------------------------------------------------------------------- */

static void choose_rows(struct attention_exact *e)
{
    const struct attention_shape *s = &e->shape;
    int64_t rows = WORK / (s->T * s->D);
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows > EXACT_ROWS ? EXACT_ROWS : rows;
    e->rows = (int)(rows < s->T ? rows : s->T);
    int64_t step = s->T / e->rows; /* each row is a little before the end of its interval */
    for (int i = 0; i < e->rows; i++)
        e->row[i] = (i + 1) * s->T / e->rows - 1 - APART * (e->rows - 1 - i) % step;
}

/* Uses only one head if two heads would share keys, because their gradients would then be added. */
static void choose_heads(struct attention_exact *e)
{
    const struct attention_shape *s = &e->shape;
    if (s->B > 1 || s->KV > 1) e->head[e->heads++] = (struct exact_head){.b = 0, .h = 0};
    e->head[e->heads++] = (struct exact_head){.b = s->B - 1, .h = s->H - 1};
}

static int64_t packed_columns(const struct attention_shape *s)
{
    return (s->H + 2 * s->KV) * s->D;
}

/* The first column of the queries (part 0) of head h, or of its keys (1) or values (2). */
static int64_t column_of(const struct attention_shape *s, int64_t h, int part)
{
    int64_t kv = h / (s->H / s->KV);
    return (part == 0 ? h : s->H + (part - 1) * s->KV + kv) * s->D;
}

/* The offset of row q of head h in dy or y, in elements. */
static int64_t row_at(const struct attention_shape *s, const struct exact_head *h, int64_t q)
{
    return ((h->b * s->T + q) * s->H + h->h) * s->D;
}

/* Copies D columns of a sequence (T,columns) and converts them to double. */
static enum status gather(const struct attention_shape *s, const void *sequence, int64_t columns,
                          int64_t column, double *to, struct arena *scratch)
{
    int64_t bytes = dtype_size(s->dtype), n = s->T * s->D;
    char *dense = arena_alloc(scratch, n * bytes);
    for (int64_t t = 0; t < s->T; t++)
        memcpy(dense + t * s->D * bytes, (const char *)sequence + (t * columns + column) * bytes,
               (size_t)(s->D * bytes));
    return reference_convert(to, DT_F64, dense, s->dtype, n);
}

/* --- exact values ----------------------------------------------------------------------------- */

/* The matrices of one head: q, k, v (T,D); dy, y (rows,D); p, ds (rows,T); dq, dk, dv (T,D). */
struct operands {
    const double *q, *k, *v;
    double *dy, *y, *p, *ds, *dq, *dk, *dv;
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, const double *x, double scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += scale * x[i];
}

static void softmax(double *s, int64_t seen)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < seen; k++) max = fmax(max, s[k]);
    for (int64_t k = 0; k < seen; k++) sum += s[k] = exp(s[k] - max);
    for (int64_t k = 0; k < seen; k++) s[k] /= sum;
}

static void run_row(const struct attention_exact *e, const struct operands *o, int i)
{
    int64_t T = e->shape.T, D = e->shape.D, q = e->row[i], seen = e->shape.causal ? q + 1 : T;
    const double *query = o->q + q * D, *dy = o->dy + i * D;
    double *p = o->p + i * T, *ds = o->ds + i * T, scale = 1 / sqrt((double)D);
    for (int64_t k = 0; k < seen; k++) p[k] = scale * dot(query, o->k + k * D, D);
    softmax(p, seen);
    for (int64_t k = 0; k < seen; k++) add_scaled(o->y + i * D, o->v + k * D, p[k], D);
    double delta = dot(dy, o->y + i * D, D);
    for (int64_t k = 0; k < seen; k++) {
        ds[k] = scale * p[k] * (dot(dy, o->v + k * D, D) - delta);
        add_scaled(o->dq + q * D, o->k + k * D, ds[k], D);
    }
}

static void run_key(const struct attention_exact *e, const struct operands *o, int64_t k)
{
    int64_t T = e->shape.T, D = e->shape.D;
    for (int i = 0; i < e->rows; i++) { /* p and ds are zero for keys that a row does not see */
        add_scaled(o->dk + k * D, o->q + e->row[i] * D, o->ds[i * T + k], D);
        add_scaled(o->dv + k * D, o->dy + i * D, o->p[i * T + k], D);
    }
}

static enum status make_head(const struct attention_exact *e, const void *qkv, struct exact_head *h,
                             struct arena *a, struct arena *scratch)
{
    const struct attention_shape *s = &e->shape;
    int64_t n = s->T * s->D, columns = packed_columns(s), bytes = dtype_size(s->dtype);
    double *x = ARENA_NEW(scratch, double, 3 * n),
           *pairs = ARENA_NEW(scratch, double, 2 * e->rows * s->T);
    h->y = ARENA_NEW(a, double, e->rows * s->D);
    h->dqkv = ARENA_NEW(a, double, 3 * n);
    struct operands o = {.q = x, .k = x + n, .v = x + 2 * n, .y = h->y, .p = pairs};
    o.ds = pairs + e->rows * s->T;
    o.dq = h->dqkv, o.dk = o.dq + n, o.dv = o.dk + n;
    o.dy = ARENA_NEW(scratch, double, e->rows * s->D);
    for (int part = 0; part < 3; part++)
        TRY(gather(s, (const char *)qkv + h->b * s->T * columns * bytes, columns,
                   column_of(s, h->h, part), x + part * n, scratch));
    for (int i = 0; i < e->rows; i++)
        TRY(reference_convert(o.dy + i * s->D, DT_F64,
                              (const char *)e->dy + row_at(s, h, e->row[i]) * bytes, s->dtype,
                              s->D));
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < e->rows; i++) run_row(e, &o, i);
#pragma omp parallel for
    for (int64_t k = 0; k < s->T; k++) run_key(e, &o, k);
    return ST_OK;
}

enum status attention_exact_make(struct attention_exact *e, const struct attention_shape *s,
                                 const void *qkv, const void *dy, struct arena *a)
{
    enum status st = ST_OK;
    *e = (struct attention_exact){.shape = *s, .dy = dy};
    choose_rows(e);
    choose_heads(e);
    for (int i = 0; i < e->heads && st == ST_OK; i++) {
        struct arena scratch = {0};
        st = make_head(e, qkv, &e->head[i], a, &scratch);
        arena_release(&scratch);
    }
    return st;
}

/* --- the error of a plan ---------------------------------------------------------------------- */

static enum status feed_dy(const struct attention_exact *e, const struct plan *p)
{
    const struct attention_shape *s = &e->shape;
    int64_t bytes = dtype_size(s->dtype);
    char *to = plan_input(p, "dy");
    TRY(p->backend->memory.fill(p->context, to, 0, s->B * s->T * s->H * s->D * bytes));
    for (int i = 0; i < e->heads; i++)
        for (int r = 0; r < e->rows; r++) {
            int64_t at = row_at(s, &e->head[i], e->row[r]) * bytes;
            TRY(p->backend->memory.upload(p->context, to + at, (const char *)e->dy + at,
                                          s->D * bytes));
        }
    return ST_OK;
}

static enum status error_of_y(const struct attention_exact *e, const struct exact_head *h,
                              const struct plan *p, double *ret, struct arena *scratch)
{
    const struct attention_shape *s = &e->shape;
    int64_t bytes = dtype_size(s->dtype), n = e->rows * s->D;
    char *y = arena_alloc(scratch, n * bytes);
    double *x = ARENA_NEW(scratch, double, n);
    for (int i = 0; i < e->rows; i++)
        TRY(p->backend->memory.download(
            p->context, y + i * s->D * bytes,
            (char *)plan_output(p, "y") + row_at(s, h, e->row[i]) * bytes, s->D * bytes));
    TRY(reference_convert(x, DT_F64, y, s->dtype, n));
    *ret = fmax(*ret, check_distance(x, h->y, n));
    return ST_OK;
}

static enum status error_of_gradient(const struct attention_exact *e, const struct exact_head *h,
                                     const struct plan *p, double *ret, struct arena *scratch)
{
    const struct attention_shape *s = &e->shape;
    int64_t columns = packed_columns(s), n = s->T * s->D;
    int64_t bytes = s->T * columns * dtype_size(s->dtype);
    char *sequence = arena_alloc(scratch, bytes);
    double *x = ARENA_NEW(scratch, double, 3 * n);
    TRY(p->backend->memory.download(p->context, sequence,
                                    (char *)plan_output(p, "dqkv") + h->b * bytes, bytes));
    for (int part = 0; part < 3; part++)
        TRY(gather(s, sequence, columns, column_of(s, h->h, part), x + part * n, scratch));
    *ret = fmax(*ret, check_distance(x, h->dqkv, 3 * n));
    return ST_OK;
}

enum status attention_exact_error(const struct attention_exact *e, struct plan *p, double *ret_y,
                                  double *ret_dqkv)
{
    enum status st = ST_OK;
    *ret_y = *ret_dqkv = 0;
    TRY(feed_dy(e, p));
    TRY(plan_run(p, NULL));
    TRY(p->backend->stream.sync(p->context));
    for (int i = 0; i < e->heads && st == ST_OK; i++) {
        struct arena scratch = {0};
        st = error_of_y(e, &e->head[i], p, ret_y, &scratch);
        if (st == ST_OK) st = error_of_gradient(e, &e->head[i], p, ret_dqkv, &scratch);
        arena_release(&scratch);
    }
    return st;
}
