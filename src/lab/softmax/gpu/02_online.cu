/* 02_online.cu - the maximum and the sum in one pass (Milakov and Gimelshein 2018).
 *
 * Each thread keeps the largest element so far and the sum of exponentials relative to it. When a
 * larger element comes, the sum is multiplied by e^(old - new), which makes it relative to the new
 * maximum. Threads are combined in the same way: each thread's sum is multiplied by e^(own maximum
 * - maximum of all). A new maximum is rare after the first elements, so the branch costs little.
 * The row is read twice instead of three times, the second time from a cache. */
#include "rows.cuh"

KERNEL(256) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float most = LOWEST_F, sum = 0; /* of this thread so far */
    for (i64 i = threadIdx.x; i < columns; i += 256) {
        float a = to_float(x[i]);
        if (a > most) {
            sum *= exp_for<ELEMENT>(most - a);
            most = a;
        }
        sum += exp_for<ELEMENT>(a - most);
    }
    float of_all = block_max<256>(most);
    float factor = 1 / block_sum<256>(sum * exp_for<ELEMENT>(most - of_all));
    for (i64 i = threadIdx.x; i < columns; i += 256)
        y[i] = to<ELEMENT>(exp_for<ELEMENT>(to_float(x[i]) - of_all) * factor);
}
