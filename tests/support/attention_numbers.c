#include "attention_numbers.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint16_t bf16_bits(double a)
{
    float f = (float)a;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double bf16_value(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

int64_t attention_columns(const struct attention_setting *s)
{
    return (s->H + 2 * s->KV) * s->D;
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* Element `column` of row t of the queries (part 0), keys (1) or values (2); `normal` is its random
 * number. */
static double bent(const struct attention_setting *s, int64_t t, int part, int64_t column,
                   double normal)
{
    switch (s->numbers) {
    case NUMBERS_SHARP:
        return part == 0 ? 30 * normal : normal;
    case NUMBERS_EQUAL:
        return part == 0 ? 0 : normal;
    case NUMBERS_KEY:
        return part == 1 && t == s->T / 3 ? 1e4 : normal;
    case NUMBERS_TINY:
        return 1e-20 * normal;
    case NUMBERS_SPIKED:
        return part < 2 && 2 * t < s->T && t % 61 == 7 ? 40 * normal : normal;
    case NUMBERS_SUNK:
        if (part == 2 || column % s->D) return normal;
        return part == 0 ? 1e20 : t + 200 < s->T || t == 0 ? 0 : -1e20;
    default:
        return normal;
    }
}

void attention_draw_qkv(const struct attention_setting *s, int64_t first, int64_t last,
                        uint16_t *qkv)
{
    int64_t columns = attention_columns(s);
#pragma omp parallel for
    for (int64_t row = first * s->T; row < last * s->T; row++) {
        float *x = malloc((size_t)columns * sizeof *x);
        uint16_t *to = qkv + (row - first * s->T) * columns;
        rng_normals(1, RNG_TEST, 1, (uint64_t)(row * columns), columns, x);
        for (int64_t c = 0; c < columns; c++) {
            int part = c < s->H * s->D ? 0 : c < (s->H + s->KV) * s->D ? 1 : 2;
            to[c] = bf16_bits(bent(s, row % s->T, part, c, (double)x[c]));
        }
        free(x);
    }
}

/* The i-th row with a gradient: the last one, and others at different positions in tiles. */
static int64_t row_of(const struct attention_setting *s, int64_t i)
{
    enum { APART = 7 };
    if (!s->rows || s->rows >= s->T) return i;
    int64_t step = s->T / s->rows;
    return (i + 1) * s->T / s->rows - 1 - APART * (s->rows - 1 - i) % step;
}

static int64_t rows_of(const struct attention_setting *s)
{
    return s->rows && s->rows < s->T ? s->rows : s->T;
}

void attention_draw_dy(const struct attention_setting *s, int64_t first, int64_t last, uint16_t *dy)
{
    int64_t columns = s->H * s->D, n = rows_of(s);
    memset(dy, 0, (size_t)((last - first) * s->T * columns) * sizeof *dy);
#pragma omp parallel for
    for (int64_t i = 0; i < (last - first) * n; i++) {
        float *x = malloc((size_t)columns * sizeof *x);
        int64_t at = i / n * s->T + row_of(s, i % n), row = first * s->T + at;
        rng_normals(1, RNG_TEST, 2, (uint64_t)(row * columns), columns, x);
        for (int64_t c = 0; c < columns; c++) dy[at * columns + c] = bf16_bits((double)x[c]);
        free(x);
    }
}

/* --- exact results ---------------------------------------------------------------------------- */

/* One head of queries and its keys, as doubles; p, ds, keep: (rows,T). */
struct head {
    const struct attention_setting *s;
    int64_t bh, rows;
    const int64_t *row;
    double *q, *dy, *k, *v; /* (rows,D) twice, (T,D) twice */
    double *p, *ds, *wide;  /* wide: the size of ds without cancellation of its two terms */
    float *keep;
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}
/* dot_size: the sum if all terms had the same sign. dot_square: the squared norm of the sum for
 * terms of random signs. */
static double dot_size(const double *a, const double *b, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += fabs(a[i] * b[i]);
    return sum;
}
static double dot_square(const double *a, const double *b, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i] * a[i] * b[i];
    return sum;
}
static void add_scaled(double *to, const double *x, double scale, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] += scale * x[i];
}

/* Turns scores into probabilities; returns their log-sum-exp. */
static double softmax(double *s, int64_t seen)
{
    double max = -INFINITY, sum = 0;
    for (int64_t k = 0; k < seen; k++) max = fmax(max, s[k]);
    for (int64_t k = 0; k < seen; k++) sum += s[k] = exp(s[k] - max);
    for (int64_t k = 0; k < seen; k++) s[k] /= sum;
    return max + log(sum);
}

static void draw_row(const struct head *h, int64_t i, int64_t seen)
{
    const struct attention_setting *s = h->s;
    float scale = s->threshold ? dropout_scale(s->threshold) : 1;
    for (int64_t k = 0; k < seen; k++) {
        bool kept = !s->threshold || dropout_attention_byte(
                                         NUMBERS_SEED, NUMBERS_SITE, NUMBERS_STEP, (uint32_t)h->bh,
                                         (uint32_t)h->row[i], (uint32_t)k) >= s->threshold;
        h->keep[i * s->T + k] = kept ? scale : 0;
    }
}

/* Computes row i of the head, which is row `at` of the group. */
static void run_row(const struct head *h, int64_t i, int64_t at, struct attention_exact_rows *e)
{
    const struct attention_setting *s = h->s;
    int64_t T = s->T, D = s->D, seen = s->causal ? h->row[i] + 1 : T;
    const double *q = h->q + i * D, *dy = h->dy + i * D;
    double *p = h->p + i * T, *ds = h->ds + i * T, *wide = h->wide + i * T,
           scale = 1 / sqrt((double)D);
    double *y = e->y + at * D, *dq = e->dq + at * D, most = 0, size_y = 0, size_q = 0;
    const float *keep = h->keep + i * T;
    draw_row(h, i, seen);
    for (int64_t k = 0; k < seen; k++) {
        p[k] = scale * dot(q, h->k + k * D, D);
        /* Any other score is minus infinity in float, so rounding does not change it. */
        if (p[k] > -3e38) most = fmax(most, scale * dot_size(q, h->k + k * D, D));
    }
    e->lse[at] = softmax(p, seen);
    e->slack[at] = most;
    for (int64_t k = 0; k < seen; k++) {
        double kept = p[k] * (double)keep[k];
        add_scaled(y, h->v + k * D, kept, D);
        size_y += kept * kept * dot(h->v + k * D, h->v + k * D, D);
    }
    double delta = dot(dy, y, D), of_delta = dot_square(dy, y, D);
    for (int64_t k = 0; k < seen; k++) {
        double kept = (double)keep[k], dp = kept * dot(dy, h->v + k * D, D);
        ds[k] = scale * p[k] * (dp - delta);
        wide[k] = scale * p[k] * sqrt(kept * kept * dot_square(dy, h->v + k * D, D) + of_delta);
        add_scaled(dq, h->k + k * D, ds[k], D);
        size_q += wide[k] * wide[k] * dot(h->k + k * D, h->k + k * D, D);
    }
    e->size_y[at] = sqrt(size_y);
    e->size_dq[at] = sqrt(size_q);
}

/* Adds the contribution of the head's rows to key k. */
static void run_key(const struct head *h, int64_t k, struct attention_exact_rows *e)
{
    int64_t T = h->s->T, D = h->s->D;
    for (int64_t i = 0; i < h->rows; i++) {
        if (h->s->causal && k > h->row[i]) continue;
        const double *q = h->q + i * D, *dy = h->dy + i * D;
        double kept = h->p[i * T + k] * (double)h->keep[i * T + k], wide = h->wide[i * T + k];
        add_scaled(e->dv + k * D, dy, kept, D);
        add_scaled(e->dk + k * D, q, h->ds[i * T + k], D);
        e->size_dv[k] += kept * kept * dot(dy, dy, D);
        e->size_dk[k] += wide * wide * dot(q, q, D);
    }
}

static double *doubles(int64_t n)
{
    double *x = calloc((size_t)(n ? n : 1), sizeof *x);
    BUG_IF(!x, "no host memory");
    return x;
}

/* D columns of the given rows of a matrix as doubles; rows NULL: 0, 1, ... */
static double *gather(const uint16_t *from, int64_t columns, int64_t column, const int64_t *rows,
                      int64_t n, int64_t D)
{
    double *to = doubles(n * D);
    for (int64_t i = 0; i < n; i++)
        for (int64_t d = 0; d < D; d++)
            to[i * D + d] = bf16_value(from[(rows ? rows[i] : i) * columns + column + d]);
    return to;
}

static void run_head(struct head *h, const uint16_t *qkv, const uint16_t *dy, int64_t head,
                     int64_t at, struct attention_exact_rows *e)
{
    const struct attention_setting *s = h->s;
    h->q = gather(qkv, attention_columns(s), head * s->D, h->row, h->rows, s->D);
    h->dy = gather(dy, s->H * s->D, head * s->D, h->row, h->rows, s->D);
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < h->rows; i++) run_row(h, i, at * h->rows + i, e);
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t k = 0; k < s->T; k++) run_key(h, k, e);
    free(h->q), free(h->dy);
}

void attention_exact_rows(const struct attention_setting *s, const uint16_t *qkv,
                          const uint16_t *dy, int64_t b, int64_t kv,
                          struct attention_exact_rows *ret)
{
    int64_t rows = rows_of(s), group = s->H / s->KV, T = s->T, D = s->D,
            columns = attention_columns(s);
    *ret = (struct attention_exact_rows){group,
                                         rows,
                                         malloc((size_t)rows * sizeof(int64_t)),
                                         doubles(group * rows * D),
                                         doubles(group * rows),
                                         doubles(group * rows),
                                         doubles(group * rows * D),
                                         doubles(T * D),
                                         doubles(T * D),
                                         doubles(group * rows),
                                         doubles(group * rows),
                                         doubles(T),
                                         doubles(T)};
    for (int64_t i = 0; i < rows; i++) ret->row[i] = row_of(s, i);
    struct head h = {.s = s,
                     .rows = rows,
                     .row = ret->row,
                     .p = doubles(rows * T),
                     .ds = doubles(rows * T),
                     .wide = doubles(rows * T)};
    h.keep = malloc((size_t)(rows * T) * sizeof *h.keep);
    h.k = gather(qkv, columns, (s->H + kv) * D, NULL, T, D);
    h.v = gather(qkv, columns, (s->H + s->KV + kv) * D, NULL, T, D);
    for (int64_t i = 0; i < group; i++) {
        h.bh = b * s->H + kv * group + i;
        run_head(&h, qkv, dy, kv * group + i, i, ret);
    }
    for (int64_t k = 0; k < T; k++)
        ret->size_dk[k] = sqrt(ret->size_dk[k]), ret->size_dv[k] = sqrt(ret->size_dv[k]);
    free(h.p), free(h.ds), free(h.wide), free(h.keep), free(h.k), free(h.v);
}

void attention_exact_free(struct attention_exact_rows *e)
{
    double *all[] = {e->y,  e->lse,    e->slack,   e->dq,      e->dk,
                     e->dv, e->size_y, e->size_dq, e->size_dk, e->size_dv};
    for (int i = 0; i < COUNT_OF(all); i++) free(all[i]);
    free(e->row);
}
