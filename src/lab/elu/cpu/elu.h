/* elu.h - elu in vectors, for the rungs that use them. */
#ifndef LAB_ELU_CPU_ELU_H
#define LAB_ELU_CPU_ELU_H

#include "lab/cpu.h"

enum { ALPHA = 1 };

/* Every lane computes an exponential (of 0 if x is positive); the sign of x chooses the result. */
INLINE vf vf_elu(vf x)
{
    return vf_by_sign(x, (float)ALPHA * vf_expm1(vf_min(x, (vf){0})), x);
}

/* The last elements, fewer than W. */
INLINE void elu_rest(float *y, const float *x, int64_t n)
{
    vf_store_part(y, vf_elu(vf_load_part(x, n)), n);
}

#endif
