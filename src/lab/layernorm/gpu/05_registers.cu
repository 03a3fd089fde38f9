/* 05_registers.cu - the row stays in registers; 16 bytes per access.
 *
 * Each thread loads 16 or 32 bytes of the row once and keeps them for both sums and the result, so
 * the variance can be computed from the deviations without another read. A block has as many
 * threads as the row needs, at most 1024. All rows use the same weight and bias, so these come from
 * L1 or L2. If the length of a row is not a multiple of 16 bytes, rows are not aligned; then each
 * access takes one element, and each pass reads the row again. */
#include "rows.cuh"

constexpr int EACH = 16 / sizeof(ELEMENT), HELD = 2;
__shared__ float of_warp[2][WARP];

DEVICE float sum_of_block(float a, float *part)
{
    int lane = threadIdx.x % WARP;
    a = warp_sum(a);
    if (lane == 0) part[threadIdx.x / WARP] = a;
    __syncthreads();
    return warp_sum(lane < blockDim.x / WARP ? part[lane] : 0);
}

DEVICE void row_in_registers(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, int columns)
{
    floats<EACH> v[HELD];
    float sum = 0, squares = 0;
    int own = threadIdx.x * EACH, step = blockDim.x * EACH;
    UNROLL for (int k = 0; k < HELD; k++)
    {
        int at = own + k * step; /* loads without a branch do not wait for each other */
        v[k] = load<EACH>(x + min(at, columns - EACH));
        UNROLL for (int e = 0; e < EACH; e++) sum += at < columns ? v[k][e] : 0;
    }
    float mean = sum_of_block(sum, of_warp[0]) / columns;
    UNROLL for (int k = 0; k < HELD; k++) UNROLL for (int e = 0; e < EACH; e++)
    {
        v[k][e] -= mean;
        squares += own + k * step < columns ? v[k][e] * v[k][e] : 0;
    }
    float factor = 1 / sqrtf(sum_of_block(squares, of_warp[1]) / columns + 1e-5f);
    UNROLL for (int k = 0; k < HELD; k++)
    {
        int at = own + k * step;
        if (at >= columns) break;
        floats<EACH> w = load<EACH>(weight + at), b = load<EACH>(weight + columns + at);
        UNROLL for (int e = 0; e < EACH; e++) v[k][e] = v[k][e] * factor * w[e] + b[e];
        store<EACH>(y + at, v[k]);
    }
}

DEVICE void row_in_three_passes(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, int columns)
{
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += to_float(x[i]);
    float mean = sum_of_block(sum, of_warp[0]) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        float a = to_float(x[i]) - mean;
        squares += a * a;
    }
    float factor = 1 / sqrtf(sum_of_block(squares, of_warp[1]) / columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = to<ELEMENT>((to_float(x[i]) - mean) * factor * to_float(weight[i]) +
                           to_float(weight[columns + i]));
}

KERNEL_MIN(1024, 1)
layernorm(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, i64 rows, i64 columns)
{
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    if (columns % EACH == 0)
        row_in_registers(y, x, weight, (int)columns);
    else
        row_in_three_passes(y, x, weight, (int)columns);
}
