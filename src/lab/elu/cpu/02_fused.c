/* 02_fused.c - all operators in one loop.
 *
 * Each element is loaded once and stored once, and what is in between stays in registers. The
 * exponential is computed only where it is needed, for the half of the elements that is negative;
 * but which ones they are is random, so the processor guesses every second branch wrong. */
#include "lab/cpu.h"

RUNG(elu_fused)
{
    const float *x = c->in[0], alpha = 1;
    float *y = c->out;
    for (int64_t i = 0; i < c->n[0]; i++) y[i] = x[i] < 0 ? alpha * (expf(x[i]) - 1) : x[i];
}
