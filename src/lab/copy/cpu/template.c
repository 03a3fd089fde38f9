// to[i] = from[i] for each i < n.
void copy(float *to, const float *from, int64_t n, int threads)
{
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
}
