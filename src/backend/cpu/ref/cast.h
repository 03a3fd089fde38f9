/* cast.h - loads and stores of single numbers of any float type, for reference kernels. */
#ifndef BACKEND_CPU_REF_CAST_H
#define BACKEND_CPU_REF_CAST_H

#include "backend/cpu/ref/float8.h"
#include "graph/op.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double bf16_load(uint16_t bits)
{
    uint32_t f32_bits = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &f32_bits, sizeof x);
    return (double)x;
}

/* Rounds to nearest even. The double is first rounded to odd as a float: two roundings to
 * nearest could break a tie the wrong way. */
static inline uint16_t bf16_store(double x)
{
    if (isnan(x)) return 0x7fc0;
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (!isinf(f) && (double)f != x) {
        if (fabs((double)f) > fabs(x)) bits--; /* rounds toward zero */
        bits |= 1;                             /* records that x was not exact */
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Element i of a tensor of type `dtype`. A double represents every number of each type exactly. */
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

/* x rounded to f32 or bf16; unchanged for f64. Float8 types are not supported. */
static inline double float_rounded(enum dtype dtype, double x)
{
    return dtype == DT_F32 ? (double)(float)x : dtype == DT_BF16 ? bf16_load(bf16_store(x)) : x;
}

#endif
