#include "attention.h"

#include "base/rng.h"

#include <math.h>

int64_t attention_elements(const struct attention *p)
{
    return p->B * p->T * p->H * p->D;
}

/* bfloat16 has eight digits: thirty-seconds below eight are among its numbers. */
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
    int64_t n = attention_elements(p);
    p->qkv = ARENA_NEW(&p->arena, float, 3 * n);
    p->dy = ARENA_NEW(&p->arena, float, n);
    for (int64_t i = 0; i < 3 * n; i++) p->qkv[i] = drawn(p, 1.3f, 0, i);
    for (int64_t i = 0; i < n; i++) p->dy[i] = drawn(p, 1, 1, i);
    p->y = ARENA_NEW(&p->arena, double, n);
    p->dqkv = ARENA_NEW(&p->arena, double, 3 * n);
    p->lse = ARENA_NEW(&p->arena, double, p->B * p->H * p->T);
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* What dropout makes of 1 at (q, k). */
static double kept(const struct attention *p, int64_t bh, int64_t q, int64_t k)
{
    const struct dropout *d = &p->attr.attention.drop;
    if (!d->threshold) return 1;
    uint8_t byte = dropout_attention_byte(d->seed, d->site, (uint32_t)p->step, (uint32_t)bh,
                                          (uint32_t)q, (uint32_t)k);
    return byte >= d->threshold ? 256.0 / (256 - d->threshold) : 0;
}

/* Query row q of head bh: forward, and what it adds to the gradients. `prob` has room for T. */
static void solve_row(struct attention *p, int64_t bh, int64_t q, double *prob)
{
    int64_t C = p->H * p->D, b = bh / p->H, head = bh % p->H * p->D, D = p->D;
    int64_t keys = p->attr.attention.causal ? q + 1 : p->T, row = b * p->T + q;
    const float *in = p->qkv + b * p->T * 3 * C + head, *dy = p->dy + row * C + head;
    double *dq = p->dqkv + row * 3 * C + head, *y = p->y + row * C + head;
    double scale = 1 / sqrt((double)D), sum = 0, delta = 0;
    for (int64_t k = 0; k < keys; k++)
        sum += prob[k] = exp(scale * dot(in + q * 3 * C, in + k * 3 * C + C, D));
    p->lse[bh * p->T + q] = log(sum);
    for (int64_t k = 0; k < keys; k++) {
        prob[k] /= sum;
        for (int64_t d = 0; d < D; d++)
            y[d] += prob[k] * kept(p, bh, q, k) * (double)in[k * 3 * C + 2 * C + d];
    }
    for (int64_t d = 0; d < D; d++)
        delta += (p->narrow ? attention_rounded(y[d]) : y[d]) * (double)dy[d];
    for (int64_t k = 0; k < keys; k++) {
        double keep = kept(p, bh, q, k);
        double ds = scale * prob[k] * (keep * dot(dy, in + k * 3 * C + 2 * C, D) - delta);
        double *dk = p->dqkv + (b * p->T + k) * 3 * C + C + head, *dv = dk + C;
        for (int64_t d = 0; d < D; d++) {
            dq[d] += ds * (double)in[k * 3 * C + C + d];
            dk[d] += ds * (double)in[q * 3 * C + d];
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
