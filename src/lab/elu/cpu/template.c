// y[i] = x[i] < 0 ? e^x[i] - 1 : x[i] for each i < n.
#include <math.h>

void elu(float *y, const float *x, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? expm1f(x[i]) : x[i];
}
