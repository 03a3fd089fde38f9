/* 01_three_passes.cu - one block per row, which it reads three times.
 *
 * The largest element is subtracted before the exponential, so that nothing overflows; the sum
 * needs the largest element, and the result needs the sum. This makes three passes over the row,
 * with a reduction over the block after each of the first two. A row of 16 KiB is still in L1 or L2
 * in the second and third pass, so memory moves little more than it must. But the block waits for
 * loads of 4 bytes in each pass, and computes each exponential twice. */
#include "rows.cuh"

KERNEL(256) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float most = LOWEST_F, sum = 0;
    for (i64 i = threadIdx.x; i < columns; i += 256) most = fmaxf(most, to_float(x[i]));
    most = block_max<256>(most);
    for (i64 i = threadIdx.x; i < columns; i += 256) sum += exp_for<ELEMENT>(to_float(x[i]) - most);
    float factor = 1 / block_sum<256>(sum);
    for (i64 i = threadIdx.x; i < columns; i += 256)
        y[i] = to<ELEMENT>(exp_for<ELEMENT>(to_float(x[i]) - most) * factor);
}
