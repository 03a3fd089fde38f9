/* 02_one_pass.c - mean and variance in one pass (Welford 1962).
 *
 * Each element updates the mean and the sum of squared deviations of all elements so far. The mean
 * of the squares minus the square of the mean would need one pass as well, but subtracts two nearly
 * equal numbers if the mean is large compared with the deviations. Welford's method saves one pass
 * over L1, but costs a division and a chain of dependent operations for each element. */
#include "lab/cpu.h"

RUNG(layernorm_one_pass)
{
    int64_t rows = c->n[0], columns = c->n[1];
    const float *weight = c->in[1], *bias = weight + columns;
    for (int64_t row = 0; row < rows; row++) {
        const float *x = (const float *)c->in[0] + row * columns;
        float *y = (float *)c->out + row * columns, mean = 0, squares = 0;
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            float d = x[i] - mean;
            mean += d / (float)(i + 1);
            squares += d * (x[i] - mean);
        }
        float factor = 1 / sqrtf(squares / (float)columns + 1e-5f);
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
        }
    }
}
