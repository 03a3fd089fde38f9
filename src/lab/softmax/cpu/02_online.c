/* 02_online.c - the maximum and the sum in one pass (Milakov and Gimelshein 2018).
 *
 * When a larger element comes, the sum so far is multiplied by e^(old - new), which makes it
 * relative to the new maximum. This saves a pass over the row, and flash attention needs it,
 * because there a row never exists as a whole. But the exponentials of the first pass are relative
 * to a maximum that may change, so each exponential is recomputed for the result. A pass over
 * L1 is cheap and an exponential is not, so expect this rung to be slower unless rows are too long
 * for the caches. */
#include "lab/cpu.h"

RUNG(softmax_online)
{
    int64_t rows = c->n[0], columns = c->n[1];
    for (int64_t row = 0; row < rows; row++) {
        const float *x = (const float *)c->in[0] + row * columns;
        float *y = (float *)c->out + row * columns, most = x[0], sum = 1;
        for (int64_t i = 1; i < columns; i++) {
            if (x[i] > most) {
                sum *= expf(most - x[i]);
                most = x[i];
            }
            sum += expf(x[i] - most);
        }
        float factor = 1 / sum;
        for (int64_t i = 0; i < columns; i++) y[i] = expf(x[i] - most) * factor;
    }
}
