// y[i] = x[i] < 0 ? e^x[i] - 1 : x[i] for each i < n.
//
// @blocks  (n + 255) / 256
// @threads 256
extern "C" __global__ void elu(ELEMENT *y, const ELEMENT *x, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = to_float(x[i]);
    y[i] = to<ELEMENT>(v < 0 ? expm1f(v) : v);
}
