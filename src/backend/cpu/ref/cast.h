/* cast.h - single numbers of any float type, for kernels that need few or that say what is right. */
#ifndef BACKEND_CPU_REF_CAST_H
#define BACKEND_CPU_REF_CAST_H

#include "backend/cpu/ref/float8.h"
#include "graph/op.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double bf16_load(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &wide, sizeof x);
    return (double)x;
}

/* The nearest of the bfloat16 numbers, the even one of two. A double is first rounded to odd in
 * float's width: rounded to nearest twice, it could land on the wrong side of a tie. */
static inline uint16_t bf16_store(double x)
{
    if (isnan(x)) return 0x7fc0;
    float narrow = (float)x;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (!isinf(narrow) && (double)narrow != x) {
        if (fabs((double)narrow) > fabs(x)) bits--; /* towards zero, then odd: "more follows" */
        bits |= 1;
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Element i of a tensor of that type; every number of each type is a double. */
static inline double float_load(enum dtype dtype, const void *from, int64_t i)
{
    if (dtype == DT_F32) return (double)((const float *)from)[i];
    if (dtype == DT_F64) return ((const double *)from)[i];
    if (dtype_is_float8(dtype)) return float8_load(dtype, ((const uint8_t *)from)[i]);
    return bf16_load(((const uint16_t *)from)[i]);
}

static inline void float_store(enum dtype dtype, void *to, int64_t i, double x)
{
    if (dtype == DT_F32) ((float *)to)[i] = (float)x;
    if (dtype == DT_F64) ((double *)to)[i] = x;
    if (dtype == DT_BF16) ((uint16_t *)to)[i] = bf16_store(x);
    if (dtype_is_float8(dtype)) ((uint8_t *)to)[i] = float8_store(dtype, x);
}

#endif
