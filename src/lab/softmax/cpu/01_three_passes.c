/* 01_three_passes.c - three passes over each row, one float at a time.
 *
 * The largest element is subtracted before the exponential, so that nothing overflows; the sum
 * needs the largest element, and the result needs the sum: three passes. A row of 4 KiB stays in
 * L1, so only the first pass, which reads x, and the second, which first writes y, access memory.
 * The cost is expf: a function call of some 20 instructions for each element. */
#include "lab/cpu.h"

RUNG(softmax_three_passes)
{
    int64_t rows = c->n[0], columns = c->n[1];
    for (int64_t row = 0; row < rows; row++) {
        const float *x = (const float *)c->in[0] + row * columns;
        float *y = (float *)c->out + row * columns, most = x[0], sum = 0;
        for (int64_t i = 1; i < columns; i++) {
            AS_WRITTEN;
            most = x[i] > most ? x[i] : most;
        }
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            sum += y[i] = expf(x[i] - most);
        }
        float factor = 1 / sum;
        for (int64_t i = 0; i < columns; i++) {
            AS_WRITTEN;
            y[i] *= factor;
        }
    }
}
