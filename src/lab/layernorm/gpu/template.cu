// Each of `rows` rows of `columns` elements by itself: y[i] = (x[i] - mean) / sqrt(variance + 1e-5)
// * weight[i] + bias[i], with the mean and the variance of the row. `weight` has the `columns`
// weights and then as many biases.
//
// @blocks  rows
// @threads 1
extern "C" __global__ void layernorm(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight,
                                     long long rows, long long columns)
{
    const ELEMENT *bias = weight + columns;
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float mean = 0, variance = 0;
    for (long long i = 0; i < columns; i++) mean += to_float(x[i]);
    mean /= columns;
    for (long long i = 0; i < columns; i++) {
        float a = to_float(x[i]) - mean;
        variance += a * a;
    }
    float factor = 1 / sqrtf(variance / columns + 1e-5f);
    for (long long i = 0; i < columns; i++)
        y[i] =
            to<ELEMENT>((to_float(x[i]) - mean) * factor * to_float(weight[i]) + to_float(bias[i]));
}
