/* 05_registers.cu - the row stays in registers; 16 bytes per access.
 *
 * A multiprocessor has 256 KiB of registers, more than its shared memory, and they need no load to
 * be read again. A block has as many threads as the row needs at 32 bytes each: 512 for 4096
 * floats, 256 for as many bf16. With 32 registers a thread (KERNEL_MIN) a multiprocessor holds
 * 2,048 of them, and their loads keep memory busy while other blocks compute. Elements beyond the
 * row count as minus infinity, whose exponential is 0. If a row is not a multiple of 16 bytes long,
 * rows begin anywhere and each access takes one element. */
#include "rows.cuh"

template <int EACH> DEVICE float largest(const floats<EACH> &a)
{
    float r = a[0];
    UNROLL for (int e = 1; e < EACH; e++) r = fmaxf(r, a[e]);
    return r;
}
/* Replaces elements by their exponentials and returns the sum of these. */
template <int EACH> DEVICE float exponentials(floats<EACH> &a, float most)
{
    float sum = 0;
    UNROLL for (int e = 0; e < EACH; e++) sum += a[e] = exp_for<ELEMENT>(a[e] - most);
    return sum;
}

/* What the warps of the block have found, one each, for each lane of all; `none` beyond them. */
DEVICE float of_warps(float a, float none, float *part)
{
    int lane = threadIdx.x % WARP;
    if (lane == 0) part[threadIdx.x / WARP] = a;
    __syncthreads();
    return lane < blockDim.x / WARP ? part[lane] : none;
}

template <int EACH> DEVICE void softmax_row(ELEMENT *y, const ELEMENT *x, int columns)
{
    constexpr int HELD = 32 / sizeof(ELEMENT) / EACH;
    __shared__ float part[2][WARP];
    floats<EACH> v[HELD];
    float most = LOWEST_F, sum = 0;
    int own = threadIdx.x * EACH, step = blockDim.x * EACH;
    UNROLL for (int k = 0; k < HELD; k++) {
        UNROLL for (int e = 0; e < EACH; e++) v[k][e] = -INFINITY_F;
        if (own + k * step < columns) v[k] = load<EACH>(x + own + k * step);
    }
    UNROLL for (int k = 0; k < HELD; k++) most = fmaxf(most, largest(v[k]));
    most = warp_max(of_warps(warp_max(most), LOWEST_F, part[0]));
    UNROLL for (int k = 0; k < HELD; k++) sum += exponentials(v[k], most);
    float factor = 1 / warp_sum(of_warps(warp_sum(sum), 0, part[1]));
    UNROLL for (int k = 0; k < HELD; k++) {
        UNROLL for (int e = 0; e < EACH; e++) v[k][e] *= factor;
        if (own + k * step < columns) store<EACH>(y + own + k * step, v[k]);
    }
}

KERNEL_MIN(1024, 2) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    constexpr int EACH = 16 / sizeof(ELEMENT);
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    if (columns % EACH == 0)
        softmax_row<EACH>(y, x, (int)columns);
    else
        softmax_row<1>(y, x, (int)columns);
}
