/* float8.h - single numbers of e4m3 and e5m2 (Micikevicius et al., arXiv 2209.05433, table 1). */
#ifndef BACKEND_CPU_REF_FLOAT8_H
#define BACKEND_CPU_REF_FLOAT8_H

#include "graph/op.h"

#include <math.h>
#include <stdint.h>

struct float8 {
    int mantissa, least, largest, infinity; /* bits; least exponent of a normal number; codes */
};

static inline struct float8 float8_of(enum dtype dtype)
{
    return dtype == DT_E4M3 ? (struct float8){3, -6, 0x7e, 0x80}
                            : (struct float8){2, -14, 0x7b, 0x7c};
}

static inline double float8_load(enum dtype dtype, uint8_t code)
{
    struct float8 f = float8_of(dtype);
    int whole = 1 << f.mantissa, bits = code & 0x7f, exponent = bits >> f.mantissa;
    double sign = code & 0x80 ? -1 : 1;
    if (bits > f.largest) return bits == f.infinity ? sign * INFINITY : NAN;
    int digits = exponent ? whole + bits % whole : bits;
    return sign * ldexp(digits, f.least - f.mantissa + (exponent ? exponent - 1 : 0));
}

/* The nearest number, the even one of two; what is larger than the largest becomes the largest, and NaN stays. */
static inline uint8_t float8_store(enum dtype dtype, double x)
{
    struct float8 f = float8_of(dtype);
    double a = fabs(x);
    if (isnan(x)) return 0x7f;
    int sign = signbit(x) ? 0x80 : 0;
    if (a >= float8_load(dtype, (uint8_t)f.largest)) return (uint8_t)(sign | f.largest);
    int e = a > 0 ? ilogb(a) : f.least;
    if (e < f.least) e = f.least;
    /* A mantissa that rounds up to the next binade carries into the exponent. */
    int code = ((e - f.least) << f.mantissa) + (int)nearbyint(ldexp(a, f.mantissa - e));
    return (uint8_t)(sign | code);
}

#endif
