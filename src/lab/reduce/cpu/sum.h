/* sum.h - the sum of n floats by eight vectors; for rungs of reduce. */
#ifndef LAB_REDUCE_CPU_SUM_H
#define LAB_REDUCE_CPU_SUM_H

#include "lab/cpu.h"

enum { SUMS = 8 }; /* additions that can be under way: a latency of 4 cycles x 2 adders */

INLINE float sum_of(const float *x, int64_t n)
{
    vf sum[SUMS] = {0};
    int64_t i = 0;
    for (; i + SUMS * W <= n; i += SUMS * W)
        for (int k = 0; k < SUMS; k++) sum[k] += vf_load(x + i + k * W);
    for (int half = SUMS / 2; half; half /= 2)
        for (int k = 0; k < half; k++) sum[k] += sum[k + half];
    float all = vf_sum(sum[0]);
    for (; i < n; i++) all += x[i];
    return all;
}

#endif
