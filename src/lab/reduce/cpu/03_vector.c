/* 03_vector.c - a vector of sums.
 *
 * One addition adds W floats to W sums. This is one chain of additions again, but of vectors: as
 * fast as W chains of single floats, with a W-th of the instructions. */
#include "lab/cpu.h"

RUNG(reduce_vector)
{
    const float *x = c->in[0];
    vf sum = {0};
    int64_t n = c->n[0], i = 0;
    for (; i + W <= n; i += W) sum += vf_load(x + i);
    float all = vf_sum(sum);
    for (; i < n; i++) all += x[i];
    *(float *)c->out = all;
}
