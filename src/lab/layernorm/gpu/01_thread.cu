/* 01_thread.cu - one thread per row, which it reads three times.
 *
 * The loops are those of a CPU: the mean, then the variance, then the result. The lanes of a warp
 * read different rows, so each load of a warp takes one element from each of 32 sectors that are a
 * row apart. For floats, a load moves 1 KiB of which 128 bytes are useful, unless L1 keeps the
 * sectors until the next elements are needed. And there are only as many threads as rows. */
#include "rows.cuh"

KERNEL(128) layernorm(ELEMENT *y, const ELEMENT *x, const ELEMENT *weight, i64 rows, i64 columns)
{
    i64 row = (i64)blockIdx.x * 128 + threadIdx.x;
    if (row >= rows) return;
    const ELEMENT *bias = weight + columns;
    x += row * columns;
    y += row * columns;
    float sum = 0, squares = 0;
    for (i64 i = 0; i < columns; i++) sum += to_float(x[i]);
    float mean = sum / columns;
    for (i64 i = 0; i < columns; i++) {
        float a = to_float(x[i]) - mean;
        squares += a * a;
    }
    float factor = 1 / sqrtf(squares / columns + 1e-5f);
    for (i64 i = 0; i < columns; i++)
        y[i] =
            to<ELEMENT>((to_float(x[i]) - mean) * factor * to_float(weight[i]) + to_float(bias[i]));
}
