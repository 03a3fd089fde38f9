/* 03_vectors.c - W elements at once, without a branch.
 *
 * Lanes cannot branch: the exponential is computed for all lanes, and the sign of x chooses between
 * the exponential and x. This computes twice as many exponentials as are needed, but a vector of W
 * exponentials costs little more than one exponential, and there is no branch to mispredict. A
 * polynomial gives e^x - 1 without the loss of digits near 0 that a subtraction has. */
#include "lab/elu/cpu/elu.h"

RUNG(elu_vectors)
{
    const float *x = c->in[0];
    float *y = c->out;
    int64_t n = c->n[0], i = 0;
    for (; i + W <= n; i += W) vf_store(y + i, vf_elu(vf_load(x + i)));
    if (i < n) elu_rest(y + i, x + i, n - i);
}
