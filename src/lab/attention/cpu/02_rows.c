/* 02_rows.c - one query at a time: its scores stay in L1.
 *
 * A row of scores is needed for one query only. So all three steps are done for one query before
 * the next query begins, and no matrix of tokens x tokens is stored. Keys and values of the head
 * are read again for each query, from L2. */
#include "lab/attention/cpu/heads.h"

RUNG(attention_rows)
{
    int64_t heads = c->n[0] * c->n[1], tokens = c->n[2];
    float *s = c->scratch;
    for (int64_t h = 0; h < heads; h++) {
        struct head of = head_of(c, h);
        for (int64_t i = 0; i < tokens; i++) {
            int64_t n = keys_of(&of, i);
            for (int64_t j = 0; j < n; j++)
                s[j] = SCALE * dot(of.q + i * of.stride, of.k + j * of.stride);
            float factor = softmax(s, n);
            weighted_sum(of.y + i * of.out_stride, s, of.v, of.stride, n, factor);
        }
    }
}
