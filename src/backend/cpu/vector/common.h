/* common.h - what the files of kernels in this folder share. */
#ifndef BACKEND_CPU_VECTOR_COMMON_H
#define BACKEND_CPU_VECTOR_COMMON_H

#include "backend/cpu/runtime/parallel.h"
#include "backend/cpu/vector/tables.h"
#include "backend/cpu/vector/vector.h"

/* Every input and output is fp32, but for ids and the step counter (int32). */
bool VEC(all_f32)(const struct kernel_call *c);
/* The types are those of a letter for each: a is `act`, f fp32, i int32. Letters that are left over are
 * inputs and outputs that an operator may do without. */
bool VEC(types_are)(const struct kernel_call *c, enum dtype act, const char *in, const char *out);
/* Row by row over the first input: fn gets ranges of rows. */
enum status VEC(over_rows)(const struct kernel_call *c, int64_t weight, range_fn fn);

INLINE int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
/* W floats of a row with `left` floats to go, or fewer at its end; the other lanes are zero. */
INLINE vf take(const float *p, int64_t left)
{
    return left >= W ? vf_load(p) : vf_load_part(p, left);
}
INLINE void put(float *p, vf a, int64_t left)
{
    left >= W ? vf_store(p, a) : vf_store_part(p, a, left);
}
INLINE uint32_t step_of(const void *in)
{
    return (uint32_t) * (const int32_t *)in;
}

#endif
