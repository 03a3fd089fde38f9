/* 03_warp.cu - one warp per row: shuffles, no barrier.
 *
 * A block waits at a barrier for its slowest warp. If a warp has a row for itself, its lanes
 * combine their maxima and sums by shuffles and never wait for another warp. For rows of a few
 * hundred elements this is the best form, since the 256 threads of a block would have one or two
 * elements each. For long rows it has a price: a multiprocessor works on up to 64 rows at once
 * instead of 8. With rows of 16 KiB, these 64 rows exceed the multiprocessor's L1 and its share of
 * L2, and the second read of a row goes to memory. */
#include "rows.cuh"

KERNEL(256) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    i64 row = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (row >= rows) return;
    x += row * columns;
    y += row * columns;
    float most = LOWEST_F, sum = 0; /* of this lane so far */
    for (i64 i = threadIdx.x % 32; i < columns; i += 32) {
        float a = to_float(x[i]);
        if (a > most) {
            sum *= exp_for<ELEMENT>(most - a);
            most = a;
        }
        sum += exp_for<ELEMENT>(a - most);
    }
    float of_all = warp_max(most);
    float factor = 1 / warp_sum(sum * exp_for<ELEMENT>(most - of_all));
    for (i64 i = threadIdx.x % 32; i < columns; i += 32)
        y[i] = to<ELEMENT>(exp_for<ELEMENT>(to_float(x[i]) - of_all) * factor);
}
