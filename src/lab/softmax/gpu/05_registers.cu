/* 05_registers.cu - the row stays in registers; 16 bytes per access.
 *
 * A multiprocessor has 256 KiB of registers, more than its shared memory, and reading a register
 * again needs no load. Each thread of a block holds 32 bytes of the row: 512 threads for 4096
 * floats, 256 for as many bf16. KERNEL_MIN limits a thread to 32 registers, so a multiprocessor
 * holds 2,048 threads, and the loads of some blocks keep memory busy while other blocks compute.
 * Elements beyond the row count as minus infinity, whose exponential is 0. If the length of a row
 * is not a multiple of 16 bytes, rows are not aligned; then accesses take one element, and each
 * pass rereads the row. */
#include "rows.cuh"

constexpr int EACH = 16 / sizeof(ELEMENT), HELD = 2;
__shared__ float largest_of_warp[WARP], sum_of_warp[WARP];

/* Lane l of each warp gets the `a` of warp l of the block, or `none` if there is no warp l. */
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

/* The largest of EACH elements. This function and the next one reduce each part of a row by itself:
 * in one chain over all parts, each operation would wait for the operation before. */
DEVICE float largest(const floats<EACH> &a)
{
    float r = a[0];
    UNROLL for (int e = 1; e < EACH; e++) r = fmaxf(r, a[e]);
    return r;
}
/* Replaces elements by their exponentials and returns the sum of the exponentials. */
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
        int at = own + k * step; /* loads without a branch do not wait for each other */
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
