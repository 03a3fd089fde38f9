/* 04_shared.cu - the row stays in shared memory and is read once.
 *
 * The block loads its row, as floats, into shared memory and makes all three passes there. Each
 * thread reads only the elements that it loaded itself, so only the maximum and the sum need
 * barriers. The exponentials replace the row, and each is computed once. Memory is read once and
 * written once; eight rows of 4096 floats fit into a multiprocessor. A row that does not fit into
 * the shared memory of a block is refused. */
#include "rows.cuh"

KERNEL(256) softmax(ELEMENT *y, const ELEMENT *x, i64 rows, i64 columns)
{
    extern __shared__ __align__(16) float row[];
    x += blockIdx.x * columns;
    y += blockIdx.x * columns;
    float most = LOWEST_F, sum = 0;
    for (i64 i = threadIdx.x; i < columns; i += 256) {
        row[i] = to_float(x[i]);
        most = fmaxf(most, row[i]);
    }
    most = block_max<256>(most);
    for (i64 i = threadIdx.x; i < columns; i += 256) {
        row[i] = exp_for<ELEMENT>(row[i] - most);
        sum += row[i];
    }
    float factor = 1 / block_sum<256>(sum);
    for (i64 i = threadIdx.x; i < columns; i += 256) y[i] = to<ELEMENT>(row[i] * factor);
}
