// *sum = x[0] + ... + x[n - 1]. The sum is a float in every type.
//
// @blocks  min((n + 255) / 256, 8 * processors)
// @threads 256
// @zeroed
extern "C" __global__ void reduce(float *sum, const ELEMENT *x, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float mine = 0;
    for (; i < n; i += (long long)gridDim.x * blockDim.x) mine += to_float(x[i]);
    atomicAdd(sum, mine);
}
