// to[i] = from[i] for each i < n.
//
// @blocks  (n + 255) / 256
// @threads 256
extern "C" __global__ void copy(ELEMENT *to, const ELEMENT *from, long long n)
{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
