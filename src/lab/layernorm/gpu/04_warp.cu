/* 04_warp.cu - one warp per row: shuffles, no barrier.
 *
 * A warp that has a row for itself combines its sums by shuffles and waits for no other warp. For
 * rows of some hundred elements, as in small models, a block of 256 threads would have little to
 * do. There are three passes again; their cost is the latency of loads from L1. */
#include "rows.cuh"

KERNEL(256) layernorm(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, i64 rows, i64 columns)
{
    i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= rows) return;
    const ELEMENT *bias = weight + columns;
    int lane = threadIdx.x % 32;
    x += row * columns;
    y += row * columns;
    float sum = 0, squares = 0;
    for (i64 i = lane; i < columns; i += 32) sum += to_float(x[i]);
    float mean = warp_sum(sum) / columns;
    for (i64 i = lane; i < columns; i += 32) {
        float a = to_float(x[i]) - mean;
        squares += a * a;
    }
    float factor = 1 / sqrtf(warp_sum(squares) / columns + 1e-5f);
    for (i64 i = lane; i < columns; i += 32)
        y[i] =
            to<ELEMENT>((to_float(x[i]) - mean) * factor * to_float(weight[i]) + to_float(bias[i]));
}
