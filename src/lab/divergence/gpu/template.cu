// y[i] is x[i] after 256 steps: v = v * 0.998 + 0.002 if i is even, v = (v - 0.002) * 0.998 if it
// is odd.
//
// @blocks  (n + 255) / 256
// @threads 256
extern "C" __global__ void divergence(ELEMENT *y, const ELEMENT *x, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = to_float(x[i]);
    for (int k = 0; k < 256; k++) v = i % 2 ? (v - 0.002f) * 0.998f : v * 0.998f + 0.002f;
    y[i] = to<ELEMENT>(v);
}
