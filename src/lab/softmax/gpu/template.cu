// Each of `rows` rows of `columns` elements by itself: y[i] = e^x[i] / (e^x[0] + e^x[1] + ...).
// The largest x[i] of the row is first subtracted from every x[i], so that no e^x overflows.
//
// @blocks  rows
// @threads 128
// @shared  4 * 128
extern "C" __global__ void softmax(ELEMENT *y, const ELEMENT *x, long long rows, long long columns)
{
    extern __shared__ float part[];
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float most = LOWEST_F, sum = 0;
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        most = fmaxf(most, to_float(x[i]));
    part[threadIdx.x] = most;
    __syncthreads();
    for (int k = 0; k < blockDim.x; k++) most = fmaxf(most, part[k]);
    __syncthreads();
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        sum += expf(to_float(x[i]) - most);
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int k = 0; k < blockDim.x; k++) sum += part[k];
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = to<ELEMENT>(expf(to_float(x[i]) - most) / sum);
}
