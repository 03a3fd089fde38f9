#include "attention.h"

#include "base/rng.h"

#include <math.h>

int64_t attention_elements(const struct attention *p)
{
    return p->B * p->T * p->H * p->D;
}

static int64_t kv_heads(const struct attention *p)
{
    return p->KV ? p->KV : p->H;
}

int64_t attention_row(const struct attention *p)
{
    return (p->H + 2 * kv_heads(p)) * p->D;
}

int64_t attention_packed(const struct attention *p)
{
    return p->B * p->T * attention_row(p);
}

/* A random number. bfloat16 has eight significant bits, so multiples of 1/32 below 8 are exact. */
static float drawn(const struct attention *p, float scale, uint32_t which, int64_t i)
{
    float x = scale * rng_normal(7, RNG_TEST, which, (uint64_t)i);
    return p->narrow ? rintf(x * 32) / 32 : x;
}

double attention_rounded(double x)
{
    enum { DIGITS = 8 };
    int e;
    frexp(x, &e);
    double unit = ldexp(1, e - DIGITS);
    return rint(x / unit) * unit;
}

void attention_draw(struct attention *p)
{
    int64_t n = attention_elements(p), all = attention_packed(p);
    p->attr.attention.heads = (int)p->H;
    p->attr.attention.kv_heads = (int)p->KV;
    p->qkv = ARENA_NEW(&p->arena, float, all);
    p->dy = ARENA_NEW(&p->arena, float, n);
    for (int64_t i = 0; i < all; i++) p->qkv[i] = drawn(p, 1.3f, 0, i);
    for (int64_t i = 0; i < n; i++) p->dy[i] = drawn(p, 1, 1, i);
    p->y = ARENA_NEW(&p->arena, double, n);
    p->dqkv = ARENA_NEW(&p->arena, double, all);
    p->lse = ARENA_NEW(&p->arena, double, p->B * p->H * p->T);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The dropout factor at (q, k). */
static double kept(const struct attention *p, int64_t bh, int64_t q, int64_t k)
{
    const struct dropout *d = &p->attr.attention.drop;
    if (!d->threshold) return 1;
    uint8_t byte = dropout_attention_byte(d->seed, d->site, (uint32_t)p->step, (uint32_t)bh,
                                          (uint32_t)q, (uint32_t)k);
    return byte >= d->threshold ? 256.0 / (256 - d->threshold) : 0;
}

/* Query row q of head bh: forward, and its contribution to the gradients. `prob` has T elements. */
static void solve_row(struct attention *p, int64_t bh, int64_t q, double *prob)
{
    int64_t C = p->H * p->D, b = bh / p->H, h = bh % p->H, D = p->D, row = attention_row(p);
    int64_t keys = p->attr.attention.causal ? q + 1 : p->T, at = b * p->T + q;
    int64_t key = C + h * kv_heads(p) / p->H * D, val = key + kv_heads(p) * D; /* of a row */
    const float *in = p->qkv + b * p->T * row, *query = in + q * row + h * D;
    const float *dy = p->dy + at * C + h * D;
    double *dq = p->dqkv + at * row + h * D, *y = p->y + at * C + h * D;
    double scale = 1 / sqrt((double)D), sum = 0, delta = 0;
    for (int64_t k = 0; k < keys; k++)
        sum += prob[k] = exp(scale * dot(query, in + k * row + key, D));
    p->lse[bh * p->T + q] = log(sum);
    for (int64_t k = 0; k < keys; k++) {
        prob[k] /= sum;
        for (int64_t d = 0; d < D; d++)
            y[d] += prob[k] * kept(p, bh, q, k) * (double)in[k * row + val + d];
    }
    for (int64_t d = 0; d < D; d++)
        delta += (p->narrow ? attention_rounded(y[d]) : y[d]) * (double)dy[d];
    for (int64_t k = 0; k < keys; k++) {
        double keep = kept(p, bh, q, k);
        double ds = scale * prob[k] * (keep * dot(dy, in + k * row + val, D) - delta);
        double *dk = p->dqkv + (b * p->T + k) * row + key, *dv = dk + kv_heads(p) * D;
        for (int64_t d = 0; d < D; d++) {
            dq[d] += ds * (double)in[k * row + key + d];
            dk[d] += ds * (double)query[d];
            dv[d] += prob[k] * keep * (double)dy[d];
        }
    }
}

void attention_solve(struct attention *p)
{
    double *prob = ARENA_NEW(&p->arena, double, p->T);
    for (int64_t bh = 0; bh < p->B * p->H; bh++)
        for (int64_t q = 0; q < p->T; q++) solve_row(p, bh, q, prob);
}

double attention_distance(const float *got, const double *want, int64_t n)
{
    double far = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        far += d * d;
        norm += want[i] * want[i];
    }
    return isnan(far) ? 1e30 : sqrt(far / (norm + 1e-30));
}
