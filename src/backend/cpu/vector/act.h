/* act.h - the activation type. A source file that includes this is compiled twice for each
 * instruction set, once with ACT_TYPE=f32 and once with ACT_TYPE=bf16; ACT() appends the type to
 * every symbol with external linkage.
 *
 * `act` is the type in memory; arithmetic, statistics, parameters, losses and sums are fp32. */
#ifndef BACKEND_CPU_VECTOR_ACT_H
#define BACKEND_CPU_VECTOR_ACT_H

#include "backend/cpu/vector/bf16.h"
#include "backend/cpu/vector/common.h"

#define ACT(name)    VEC(VEC_NAME(name, ACT_TYPE))
#define IS_BF16_bf16 1
#define ACT_IS_BF16  VEC_NAME(IS_BF16, ACT_TYPE)

#if ACT_IS_BF16
typedef uint16_t act;
INLINE vf load_full_act(const act *p)
{
    return vf_load_bf16(p);
}
INLINE vf load_act(const act *p, int64_t left)
{
    return load_bf16(p, left);
}
INLINE void store_act(act *p, vf a, int64_t left)
{
    store_bf16(p, a, left);
}
INLINE float act_at(const act *p, int64_t i)
{
    return bf16_value(p[i]);
}
#else
typedef float act;
INLINE vf load_full_act(const act *p)
{
    return vf_load(p);
}
INLINE vf load_act(const act *p, int64_t left)
{
    return load(p, left);
}
INLINE void store_act(act *p, vf a, int64_t left)
{
    store(p, a, left);
}
INLINE float act_at(const act *p, int64_t i)
{
    return p[i];
}
#endif

#endif
