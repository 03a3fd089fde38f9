/* chains.h - the chain of arithmetic for negative numbers and the one for all others. */
#ifndef LAB_DIVERGENCE_CPU_CHAINS_H
#define LAB_DIVERGENCE_CPU_CHAINS_H

#include "lab/cpu.h"

enum { STEPS = 8 };
static const float M = 0.998f, C = 0.002f;

INLINE float positive_chain(float v)
{
    for (int k = 0; k < STEPS; k++) {
        AS_WRITTEN;
        v = v * M + C;
    }
    return v;
}
INLINE float negative_chain(float v)
{
    for (int k = 0; k < STEPS; k++) {
        AS_WRITTEN;
        v = (v - C) * M;
    }
    return v;
}

INLINE vf positive_chains(vf v)
{
    for (int k = 0; k < STEPS; k++) v = v * M + C;
    return v;
}
INLINE vf negative_chains(vf v)
{
    for (int k = 0; k < STEPS; k++) v = (v - C) * M;
    return v;
}
INLINE vf chains(vf v)
{
    return vf_select(v < 0, negative_chains(v), positive_chains(v));
}

#endif
