/* 02_block.cu - one block per row: coalesced, three passes.
 *
 * Neighboring lanes read neighboring elements, and 256 threads share the work of a row. A row of
 * a few KiB is still in L1 in the second and third pass, so memory moves little more than it must.
 * But in each pass the block waits for loads of one element per thread, and it waits twice for a
 * sum over all threads. */
#include "rows.cuh"

KERNEL(256) layernorm(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, i64 rows, i64 columns)
{
    const ELEMENT *bias = weight + columns;
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float sum = 0, squares = 0;
    for (i64 i = threadIdx.x; i < columns; i += 256) sum += to_float(x[i]);
    float mean = block_sum<256>(sum) / columns;
    for (i64 i = threadIdx.x; i < columns; i += 256) {
        float a = to_float(x[i]) - mean;
        squares += a * a;
    }
    float factor = 1 / sqrtf(block_sum<256>(squares) / columns + 1e-5f);
    for (i64 i = threadIdx.x; i < columns; i += 256)
        y[i] =
            to<ELEMENT>((to_float(x[i]) - mean) * factor * to_float(weight[i]) + to_float(bias[i]));
}
