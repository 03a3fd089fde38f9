/* common.h - definitions that the kernels of this folder share. */
#ifndef BACKEND_CPU_VECTOR_COMMON_H
#define BACKEND_CPU_VECTOR_COMMON_H

#include "backend/cpu/runtime/parallel.h"
#include "backend/cpu/vector/tables.h"
#include "backend/cpu/vector/vector.h"

#ifndef ACT_TYPE
#define ACT_TYPE f32
#endif
#define TYPE_f32  DT_F32
#define TYPE_bf16 DT_BF16
#define ACT_DTYPE VEC_NAME(TYPE, ACT_TYPE)

/* A kernel row. in_letters and out_letters are letters of types_are (kernel.h). Other members, such
 * as scratch_bytes, come last. */
#define ROW(op_name, in_letters, out_letters, run_fn, ...)                             \
    {                                                                                  \
        .op = OP_##op_name, .variant = ISA_NAME, .in = in_letters, .out = out_letters, \
        .act = ACT_DTYPE, .run = run_fn, __VA_ARGS__                                   \
    }

/* Defines run_NAME, which runs NAME_range on ranges of rows of the first input. An element costs
 * about as much as reading `weight` numbers. */
#define RUN_ROWS(name, weight)                                 \
    static enum status run_##name(const struct kernel_call *c) \
    {                                                          \
        return VEC(over_rows)(c, weight, name##_range);        \
    }
enum status VEC(over_rows)(const struct kernel_call *c, int64_t weight, range_fn fn);

/* Loads or stores W floats, or only `left` floats if fewer are left; other lanes load as 0. */
INLINE vf load(const float *p, int64_t left)
{
    return left >= W ? vf_load(p) : vf_load_part(p, left);
}
INLINE void store(float *p, vf a, int64_t left)
{
    left >= W ? vf_store(p, a) : vf_store_part(p, a, left);
}
/* y[i] = the sum of `parts` partial sums, `stride` apart, for first <= i < last. */
INLINE void sum_parts(const float *part, int64_t parts, int64_t stride, float *y, int64_t first,
                      int64_t last)
{
    for (int64_t i = first; i < last; i += W) {
        vf sum = {0};
        for (int64_t k = 0; k < parts; k++) sum += load(part + k * stride + i, last - i);
        store(y + i, sum, last - i);
    }
}
INLINE uint32_t step_of(const void *in)
{
    return (uint32_t) * (const int32_t *)in;
}

#endif
