/* 01_three_passes.c - three passes over each row, one float at a time.
 *
 * The passes compute the mean, the variance, and the result. A row of a few KiB stays in L1, so the
 * second and the third pass do not access memory. But each addition waits for the addition
 * before. */
#include "lab/cpu.h"

RUNG(layernorm_three_passes)
{
    int64_t rows = c->n[0], columns = c->n[1];
    const float *weight = c->in[1], *bias = weight + columns;
    for (int64_t row = 0; row < rows; row++) {
        const float *x = (const float *)c->in[0] + row * columns;
        float *y = (float *)c->out + row * columns, sum = 0, squares = 0;
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            sum += x[i];
        }
        float mean = sum / (float)columns;
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            squares += (x[i] - mean) * (x[i] - mean);
        }
        float factor = 1 / sqrtf(squares / (float)columns + 1e-5f);
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
        }
    }
}
