// *sum = x[0] + ... + x[n - 1]. The sum is a float in every type.
void reduce(float *sum, const float *x, int64_t n, int threads)
{
    double all = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : all)
    for (int64_t i = 0; i < n; i++) all += x[i];
    *sum = (float)all;
}
