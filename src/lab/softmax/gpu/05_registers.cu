/* 05_registers.cu - the row stays in registers; 16 bytes per access.
 *
 * A multiprocessor has 256 KiB of registers, more than its shared memory, and they need no load to
 * be read again. A block has as many threads as the row needs at 32 bytes each: 512 for 4096
 * floats, 256 for as many bf16. With 32 registers a thread (KERNEL_MIN) a multiprocessor holds
 * 2,048 of them, and their loads keep memory busy while other blocks compute. Elements beyond the
 * row count as minus infinity, whose exponential is 0. If a row is not a multiple of 16 bytes long,
 * rows begin anywhere: each access takes one element, and each pass reads the row again. */
#include "rows.cuh"

constexpr int EACH = 16 / sizeof(ELEMENT), HELD = 2;
__shared__ float largest_of_warp[WARP], sum_of_warp[WARP];

/* What each warp of the block has found, for the lanes of all; `none` for lanes beyond. */
DEVICE float of_warps(float a, float none, float *part)
{
    int lane = threadIdx.x % WARP;
    if (lane == 0) part[threadIdx.x / WARP] = a;
    __syncthreads();
    return lane < blockDim.x / WARP ? part[lane] : none;
}
DEVICE float largest_of_block(float a)
{
    return warp_max(of_warps(warp_max(a), LOWEST_F, largest_of_warp));
}
DEVICE float sum_of_block(float a)
{
    return warp_sum(of_warps(warp_sum(a), 0, sum_of_warp));
}

/* Parts of a row apart: one after the other, their additions would wait for each other. */
DEVICE float largest(const floats<EACH> &a)
{
    float r = a[0];
    UNROLL for (int e = 1; e < EACH; e++) r = fmaxf(r, a[e]);
    return r;
}
/* Replaces elements by their exponentials and returns the sum of these. */
DEVICE float exponentials(floats<EACH> &a, float most)
{
    float sum = 0;
    UNROLL for (int e = 0; e < EACH; e++) sum += a[e] = exp_for<ELEMENT>(a[e] - most);
    return sum;
}

DEVICE void row_in_registers(ELEMENT *y, const ELEMENT *x, int columns)
{
    floats<EACH> v[HELD];
    float most = LOWEST_F, sum = 0;
    int own = threadIdx.x * EACH, step = blockDim.x * EACH;
    UNROLL for (int k = 0; k < HELD; k++)
    {
        int at = own + k * step; /* without a branch the loads do not wait for each other */
        v[k] = load<EACH>(x + min(at, columns - EACH));
        UNROLL for (int e = 0; e < EACH; e++) v[k][e] = at < columns ? v[k][e] : -INFINITY_F;
    }
    UNROLL for (int k = 0; k < HELD; k++) most = fmaxf(most, largest(v[k]));
    most = largest_of_block(most);
    UNROLL for (int k = 0; k < HELD; k++) sum += exponentials(v[k], most);
    float factor = 1 / sum_of_block(sum);
    UNROLL for (int k = 0; k < HELD; k++)
    {
        UNROLL for (int e = 0; e < EACH; e++) v[k][e] *= factor;
        if (own + k * step < columns) store<EACH>(y + own + k * step, v[k]);
    }
}

DEVICE void row_in_three_passes(ELEMENT *y, const ELEMENT *x, int columns)
{
    float most = LOWEST_F, sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) most = fmaxf(most, to_float(x[i]));
    most = largest_of_block(most);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += exp_for<ELEMENT>(to_float(x[i]) - most);
    float factor = 1 / sum_of_block(sum);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        y[i] = to<ELEMENT>(exp_for<ELEMENT>(to_float(x[i]) - most) * factor);
}

KERNEL_MIN(1024, 2) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    if (columns % EACH == 0)
        row_in_registers(y, x, (int)columns);
    else
        row_in_three_passes(y, x, (int)columns);
}
