// Each of `rows` rows of `columns` floats by itself: y[i] = (x[i] - mean) / sqrt(variance + 1e-5) *
// weight[i] + bias[i], with the mean and the variance of the row. `weight` has the `columns`
// weights and then as many biases.
#include <math.h>

void layernorm(float *y, const float *x, const float *weight, int64_t rows, int64_t columns,
               int threads)
{
    const float *bias = weight + columns;
#pragma omp parallel for num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *from = x + row * columns;
        float *to = y + row * columns, mean = 0, variance = 0;
        for (int64_t i = 0; i < columns; i++) mean += from[i];
        mean /= (float)columns;
        for (int64_t i = 0; i < columns; i++) variance += (from[i] - mean) * (from[i] - mean);
        float factor = 1 / sqrtf(variance / (float)columns + 1e-5f);
        for (int64_t i = 0; i < columns; i++)
            to[i] = (from[i] - mean) * factor * weight[i] + bias[i];
    }
}
