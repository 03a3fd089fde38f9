/* float8.h - numbers from and to e4m3 and e5m2 (Micikevicius et al., arXiv 2209.05433, table 1). */
#ifndef BACKEND_CPU_REF_FLOAT8_H
#define BACKEND_CPU_REF_FLOAT8_H

#include "graph/op.h"

#include <math.h>
#include <stdint.h>

struct float8 {
    int mantissa;     /* bits */
    int min_exponent; /* of a normal number */
    /* Codes without the sign. A format without infinity (e4m3) has 0x80, which no code equals. */
    int largest, infinity;
};

static inline struct float8 float8_of(enum dtype dtype)
{
    return dtype == DT_E4M3 ? (struct float8){3, -6, 0x7e, 0x80}
                            : (struct float8){2, -14, 0x7b, 0x7c};
}

static inline double float8_load(enum dtype dtype, uint8_t code)
{
    struct float8 f = float8_of(dtype);
    int one = 1 << f.mantissa, bits = code & 0x7f, exponent = bits >> f.mantissa;
    double sign = code & 0x80 ? -1 : 1;
    if (bits > f.largest) return bits == f.infinity ? sign * INFINITY : NAN;
    int digits = exponent ? one + bits % one : bits;
    return sign * ldexp(digits, f.min_exponent - f.mantissa + (exponent ? exponent - 1 : 0));
}

/* Rounds to nearest even, saturates at the largest number and keeps NaN. */
static inline uint8_t float8_store(enum dtype dtype, double x)
{
    struct float8 f = float8_of(dtype);
    double a = fabs(x);
    if (isnan(x)) return 0x7f;
    int sign = signbit(x) ? 0x80 : 0;
    if (a >= float8_load(dtype, (uint8_t)f.largest)) return (uint8_t)(sign | f.largest);
    int e = a > 0 ? ilogb(a) : f.min_exponent;
    if (e < f.min_exponent) e = f.min_exponent;
    /* A mantissa that rounds up to the next power of two carries into the exponent. */
    int code = ((e - f.min_exponent) << f.mantissa) + (int)nearbyint(ldexp(a, f.mantissa - e));
    return (uint8_t)(sign | code);
}

#endif
