/* 02_fused.c - all operators in one loop.
 *
 * Each element is loaded once and stored once, and intermediate results stay in registers. The
 * exponential is computed only for the half of the elements that is negative. But the signs are
 * random, so the processor mispredicts every second branch. */
#include "lab/cpu.h"

RUNG(elu_fused)
{
    const float *x = c->in[0], alpha = 1;
    float *y = c->out;
    for (int64_t i = 0; i < c->n[0]; i++) y[i] = x[i] < 0 ? alpha * (expf(x[i]) - 1) : x[i];
}
