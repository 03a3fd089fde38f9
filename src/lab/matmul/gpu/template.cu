// c (m,n) = a (m,k) times b (k,n): c[row * n + column] is the sum of a[row * k + i] times
// b[i * n + column] over all i < k.
//
// @blocks  (n + 15) / 16, (m + 15) / 16
// @threads 16, 16
extern "C" __global__ void matmul(ELEMENT *c, const ELEMENT *a, const ELEMENT *b, long long m,
                                  long long n, long long k)
{
    long long row = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    long long column = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n) return;
    float sum = 0;
    for (long long i = 0; i < k; i++)
#ifdef TF32 // --dtype=tf32: b is stored transposed
        sum += a[row * k + i] * b[column * k + i];
#else
        sum += to_float(a[row * k + i]) * to_float(b[i * n + column]);
#endif
    c[row * n + column] = to<ELEMENT>(sum);
}
