/* row.h - the softmax of a row in vectors, for the rungs that use them. */
#ifndef LAB_SOFTMAX_CPU_ROW_H
#define LAB_SOFTMAX_CPU_ROW_H

#include "lab/cpu.h"

INLINE float largest_of(const float *x, int64_t n)
{
    vf all = vf_all(x[0]);
    int64_t i = 0;
    for (; i + W <= n; i += W) all = vf_max(all, vf_load(x + i));
    float most = vf_max_lane(all);
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* Writes e^(x - most) to y and returns the sum. */
INLINE float exponentials_of(float *y, const float *x, int64_t n, float most)
{
    vf all = {0};
    int64_t i = 0;
    for (; i + W <= n; i += W) {
        vf e = vf_exp(vf_load(x + i) - most);
        vf_store(y + i, e);
        all += e;
    }
    if (i == n) return vf_sum(all);
    vf e = vf_exp(vf_load_part(x + i, n - i) - most);
    vf_store_part(y + i, e, n - i);
    return vf_sum(all + vf_select(vf_lanes(n - i), e, (vf){0}));
}

INLINE void softmax_row(float *y, const float *x, int64_t n)
{
    float factor = 1 / exponentials_of(y, x, n, largest_of(x, n));
    int64_t i = 0;
    for (; i + W <= n; i += W) vf_store(y + i, vf_load(y + i) * factor);
    for (; i < n; i++) y[i] *= factor;
}

/* Like softmax_row, but writes the result by streaming stores; `held` has space for the n
 * exponentials. The caller calls vf_stream_end. */
INLINE void softmax_row_streamed(float *y, const float *x, int64_t n, float *held)
{
    float factor = 1 / exponentials_of(held, x, n, largest_of(x, n));
    int64_t i = 0;
    for (; i < n && (uintptr_t)(y + i) % sizeof(vf); i++) y[i] = held[i] * factor;
    for (; i + W <= n; i += W) vf_stream(y + i, vf_load(held + i) * factor);
    for (; i < n; i++) y[i] = held[i] * factor;
}

#endif
