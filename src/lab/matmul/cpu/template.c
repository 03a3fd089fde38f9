// c (m,n) = a (m,k) times b (k,n): c[row * n + column] is the sum of a[row * k + i] times
// b[i * n + column] over all i < k.
void matmul(float *c, const float *a, const float *b, int64_t m, int64_t n, int64_t k, int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t row = 0; row < m; row++)
        for (int64_t column = 0; column < n; column++) {
            float sum = 0;
            for (int64_t i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
            c[row * n + column] = sum;
        }
}
