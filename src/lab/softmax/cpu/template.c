// Each of `rows` rows of `columns` elements by itself: y[i] = e^x[i] / (e^x[0] + e^x[1] + ...).
// The largest x[i] of the row is first subtracted from every x[i], so that no e^x overflows.
#include <math.h>

void softmax(float *y, const float *x, int64_t rows, int64_t columns, int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *from = x + row * columns;
        float *to = y + row * columns, most = from[0], sum = 0;
        for (int64_t i = 1; i < columns; i++) most = from[i] > most ? from[i] : most;
        for (int64_t i = 0; i < columns; i++) sum += to[i] = expf(from[i] - most);
        for (int64_t i = 0; i < columns; i++) to[i] /= sum;
    }
}
