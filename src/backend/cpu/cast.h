/* cast.h - single bfloat16 numbers, for kernels that need few or that say what is right. */
#ifndef BACKEND_CPU_CAST_H
#define BACKEND_CPU_CAST_H

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

#endif
