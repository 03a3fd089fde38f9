/* 01_one.c - one sum, one addition after the other.
 *
 * Each addition needs the result of the addition before and takes about four clock cycles: the loop
 * is bound by this latency, not by memory and not by the number of adders. The compiler may not
 * change the order of the additions, because another order rounds differently. */
#include "lab/cpu.h"

RUNG(reduce_one)
{
    const float *x = c->in[0];
    float sum = 0;
    for (int64_t i = 0; i < c->n[0]; i++) sum += x[i];
    *(float *)c->out = sum;
}
