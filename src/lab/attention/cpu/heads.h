/* heads.h - addresses and basic operations of one head, for the rungs of attention. The input is
 * packed, (batch, tokens, 3, heads, 64); the output is (batch, tokens, heads, 64). */
#ifndef LAB_ATTENTION_CPU_HEADS_H
#define LAB_ATTENTION_CPU_HEADS_H

#include "lab/cpu.h"

enum { HEAD = 64, HEAD_VECTORS = HEAD / W };
static const float SCALE = 0.125f; /* 1 / sqrt(64) */

struct head {
    const float *q, *k, *v; /* of token 0; the next token is `stride` floats further */
    float *y;               /* output of token 0; the next token is `out_stride` floats further */
    int64_t stride, out_stride, tokens;
    bool causal; /* true: a query attends only to keys up to its own position */
};

/* The head with number i, where the heads of all sequences are counted together. */
INLINE struct head head_of(const struct lab_call *c, int64_t i)
{
    int64_t heads = c->n[1], tokens = c->n[2], b = i / heads, h = i % heads;
    const float *x = (const float *)c->in[0] + b * tokens * 3 * heads * HEAD + h * HEAD;
    float *y = (float *)c->out + b * tokens * heads * HEAD + h * HEAD;
    return (struct head){.q = x,
                         .k = x + heads * HEAD,
                         .v = x + 2 * heads * HEAD,
                         .y = y,
                         .stride = 3 * heads * HEAD,
                         .out_stride = heads * HEAD,
                         .tokens = tokens,
                         .causal = c->form == 0};
}

/* The number of keys that query i attends to: keys 0 ... n - 1. */
INLINE int64_t keys_of(const struct head *of, int64_t i)
{
    return of->causal ? i + 1 : of->tokens;
}

INLINE float dot(const float *a, const float *b)
{
    vf sum = {0};
    for (int i = 0; i < HEAD; i += W) sum += vf_load(a + i) * vf_load(b + i);
    return vf_sum(sum);
}

/* Replaces each of n scores s by e^(s - largest score); returns 1 / the sum of the exponentials. */
INLINE float softmax(float *s, int64_t n)
{
    vf most = vf_all(s[0]), sum = {0};
    int64_t i = 0;
    for (; i + W <= n; i += W) most = vf_max(most, vf_load(s + i));
    float top = vf_max_lane(most), rest = 0;
    for (; i < n; i++) top = s[i] > top ? s[i] : top;
    for (i = 0; i + W <= n; i += W) {
        vf e = vf_exp(vf_load(s + i) - top);
        vf_store(s + i, e);
        sum += e;
    }
    for (; i < n; i++) rest += s[i] = expf(s[i] - top);
    return 1 / (vf_sum(sum) + rest);
}

/* y = factor * the sum of p[j] v[j] over n keys; v[j] begins at v + j * stride. */
INLINE void weighted_sum(float *y, const float *p, const float *v, int64_t stride, int64_t n,
                         float factor)
{
    vf sum[HEAD_VECTORS];
    for (int i = 0; i < HEAD_VECTORS; i++) sum[i] = (vf){0};
    for (int64_t j = 0; j < n; j++)
        for (int i = 0; i < HEAD_VECTORS; i++) sum[i] += p[j] * vf_load(v + j * stride + i * W);
    for (int i = 0; i < HEAD_VECTORS; i++) vf_store(y + i * W, sum[i] * factor);
}

#endif
