/* act.h - the type of activations: a source that includes this is compiled twice for each instruction
 * set, with ACT_TYPE defined as f32 and as bf16, which ACT() puts behind all that leaves the file.
 *
 * `act` is what lies in memory; arithmetic, statistics, parameters, losses and sums are fp32. */
#ifndef BACKEND_CPU_VECTOR_ACT_H
#define BACKEND_CPU_VECTOR_ACT_H

#include "backend/cpu/vector/bf16.h"
#include "backend/cpu/vector/common.h"

#ifndef ACT_TYPE
#define ACT_TYPE f32
#endif
#define ACT(name)   VEC(VEC_NAME(name, ACT_TYPE))
#define TYPE_f32    DT_F32
#define TYPE_bf16   DT_BF16
#define ACT_DTYPE   VEC_NAME(TYPE, ACT_TYPE)
#define NARROW_bf16 1
#define ACT_NARROW  VEC_NAME(NARROW, ACT_TYPE)

#if ACT_NARROW
typedef uint16_t act;
INLINE vf load_act(const act *p)
{
    return vf_load_bf16(p);
}
INLINE vf take_act(const act *p, int64_t left)
{
    return take_bf16(p, left);
}
INLINE void put_act(act *p, vf a, int64_t left)
{
    put_bf16(p, a, left);
}
INLINE float act_at(const act *p, int64_t i)
{
    return bf16_value(p[i]);
}
#else
typedef float act;
INLINE vf load_act(const act *p)
{
    return vf_load(p);
}
INLINE vf take_act(const act *p, int64_t left)
{
    return take(p, left);
}
INLINE void put_act(act *p, vf a, int64_t left)
{
    put(p, a, left);
}
INLINE float act_at(const act *p, int64_t i)
{
    return p[i];
}
#endif

#endif
