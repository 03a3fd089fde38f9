/* silu.h - sigmoid(x) = 1 / (1 + e^-x), and x sigmoid(x) with its slope, for SiLU and SwiGLU. */
#ifndef BACKEND_CPU_VECTOR_SILU_H
#define BACKEND_CPU_VECTOR_SILU_H

#include "backend/cpu/vector/vector.h"

struct silu {
    vf y, slope;
};

/* Numbers below -87 are replaced by -87: there, all results are 0 up to rounding, and e^-x would
 * overflow. */
INLINE vf vf_sigmoid(vf x)
{
    return vf_reciprocal(1.0f + vf_exp(-vf_max(vf_all(-87.0f), x)));
}
INLINE struct silu silu_point(vf x)
{
    x = vf_max(vf_all(-87.0f), x);
    vf s = vf_sigmoid(x), y = x * s;
    return (struct silu){y, s + y * (1.0f - s)};
}

#endif
