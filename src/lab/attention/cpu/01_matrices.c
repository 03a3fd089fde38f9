/* 01_matrices.c - the definition: matrices of tokens x tokens in memory.
 *
 * This computes the scores of all heads, then their softmax, then the weighted sums of values, like
 * a framework with one operator for each step. A matrix of floats is written, changed by the
 * softmax and read again; with 1024 tokens the matrix has 4 MiB for each head. The causal mask
 * costs nothing: scores of a query and a later key are never computed. */
#include "lab/attention/cpu/heads.h"

RUNG(attention_matrices)
{
    int64_t heads = c->n[0] * c->n[1], tokens = c->n[2];
    float *all = c->scratch;
    for (int64_t h = 0; h < heads; h++) {
        struct head of = head_of(c, h);
        float *s = all + h * tokens * tokens;
        for (int64_t i = 0; i < tokens; i++)
            for (int64_t j = 0; j < keys_of(&of, i); j++)
                s[i * tokens + j] = SCALE * dot(of.q + i * of.stride, of.k + j * of.stride);
    }
    for (int64_t h = 0; h < heads; h++) {
        struct head of = head_of(c, h);
        for (int64_t i = 0; i < tokens; i++) {
            float *s = all + (h * tokens + i) * tokens;
            int64_t n = keys_of(&of, i);
            float factor = softmax(s, n);
            for (int64_t j = 0; j < n; j++) s[j] *= factor;
        }
    }
    for (int64_t h = 0; h < heads; h++) {
        struct head of = head_of(c, h);
        for (int64_t i = 0; i < tokens; i++)
            weighted_sum(of.y + i * of.out_stride, all + (h * tokens + i) * tokens, of.v, of.stride,
                         keys_of(&of, i), 1);
    }
}
