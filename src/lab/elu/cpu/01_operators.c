/* 01_operators.c - one operator after the other, each in a pass over memory.
 *
 * y = x < 0 ? alpha (e^x - 1) : x is five operators: exponential, subtraction, multiplication,
 * comparison, choice. A program that calls a function for each of them writes a tensor of
 * intermediate results every time and reads it again. All of it goes through memory, because the
 * caches are smaller than a tensor. */
#include "lab/cpu.h"

RUNG(elu_operators)
{
    const float *x = c->in[0], one = 1, alpha = 1;
    float *y = c->out, *a = c->scratch;
    int64_t n = c->n[0];
    bool *negative = (bool *)(a + n);
    for (int64_t i = 0; i < n; i++) a[i] = expf(x[i]);
    for (int64_t i = 0; i < n; i++) {
        AS_WRITTEN;
        a[i] -= one;
    }
    for (int64_t i = 0; i < n; i++) {
        AS_WRITTEN;
        a[i] *= alpha;
    }
    for (int64_t i = 0; i < n; i++) {
        AS_WRITTEN;
        negative[i] = x[i] < 0;
    }
    for (int64_t i = 0; i < n; i++) {
        AS_WRITTEN;
        y[i] = negative[i] ? a[i] : x[i];
    }
}
