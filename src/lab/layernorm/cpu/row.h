/* row.h - the LayerNorm of a row in vectors, for the rungs that use them. */
#ifndef LAB_LAYERNORM_CPU_ROW_H
#define LAB_LAYERNORM_CPU_ROW_H

#include "lab/cpu.h"

/* Returns the mean of x; *ret_factor is 1 / sqrt(variance + 1e-5). Four vectors of sums are
 * independent, so their additions overlap. */
INLINE float mean_of(const float *x, int64_t n, float *ret_factor)
{
    vf sum[4] = {{0}}, squares[4] = {{0}};
    int64_t whole = n / (4 * W) * (4 * W);
    float rest = 0;
    for (int64_t i = 0; i < whole; i += 4 * W)
        for (int k = 0; k < 4; k++) sum[k] += vf_load(x + i + k * W);
    for (int64_t i = whole; i < n; i++) rest += x[i];
    float mean = (vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3])) + rest) / (float)n;
    rest = 0;
    for (int64_t i = 0; i < whole; i += 4 * W)
        for (int k = 0; k < 4; k++) {
            vf d = vf_load(x + i + k * W) - mean;
            squares[k] += d * d;
        }
    for (int64_t i = whole; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
    float all = vf_sum((squares[0] + squares[1]) + (squares[2] + squares[3])) + rest;
    *ret_factor = 1 / sqrtf(all / (float)n + 1e-5f);
    return mean;
}

/* With `streams`, whole vectors are written by streaming stores; then the caller calls
 * vf_stream_end. */
INLINE void layernorm_row(float *y, const float *x, const float *weight, const float *bias,
                          int64_t n, bool streams)
{
    float factor, mean = mean_of(x, n, &factor);
    int64_t i = 0;
    for (; streams && i < n && (uintptr_t)(y + i) % sizeof(vf); i++)
        y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
    for (; i + W <= n; i += W) {
        vf a = (vf_load(x + i) - mean) * factor * vf_load(weight + i) + vf_load(bias + i);
        if (streams)
            vf_stream(y + i, a);
        else
            vf_store(y + i, a);
    }
    for (; i < n; i++) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
}

#endif
