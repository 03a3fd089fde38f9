// y[i] is x[i] after 8 steps: v = v * 0.998 + 0.002, or v = (v - 0.002) * 0.998 if x[i] < 0.
void divergence(float *y, const float *x, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < n; i++) {
        float v = x[i];
        for (int k = 0; k < 8; k++) v = x[i] < 0 ? (v - 0.002f) * 0.998f : v * 0.998f + 0.002f;
        y[i] = v;
    }
}
