/* narrow.h - the table of number formats, and rounding to them in double precision.
 *
 * Functions pass a number of a format as the double with the same value. They round to the nearest
 * number, ties to even. A double has at least two bits more than twice the significand bits of each
 * format, so the double sum of two numbers, rounded to the format, is the correctly rounded sum
 * (Figueroa, 1995). */
#ifndef LAB_NARROW_H
#define LAB_NARROW_H

#include "base/base.h"

enum { NARROW_TEXT = 40 };

enum narrow {
    NARROW_FP32,
    NARROW_TF32,
    NARROW_FP16,
    NARROW_BF16,
    NARROW_E4M3,
    NARROW_E5M2,
    NARROW_FORMATS
};

struct narrow_format {
    const char *name;       /* "fp16" */
    const char *dtype;      /* "float16", as --dtype takes it */
    int exponent, fraction; /* bits of each, without the sign bit */
    int least, most;        /* exponents of the smallest and of the largest normal number */
    double largest;
    uint32_t nan;           /* the bits of a NaN */
    bool infinities;        /* false: the bits of infinities are numbers, as in e4m3 */
    bool saturates;         /* conversions turn what is too large into `largest`, not infinity */
    const char *conversion; /* PTX instruction: "cvt.rn.f16.f32" */
};

extern const struct narrow_format narrow_formats[NARROW_FORMATS];

/* The nearest number of the format. If x is beyond the largest number: infinity or, if the format
 * saturates, the largest number. */
double narrow_round(enum narrow f, double x);
/* Convert between a number of the format and its bits (the sign is the highest bit). */
uint32_t narrow_bits(enum narrow f, double x);
double narrow_value(enum narrow f, uint32_t bits);
/* The distance from a number of the format to the next number of larger magnitude, as if exponents
 * were unlimited; NAN for infinity and NaN. */
double narrow_spacing(enum narrow f, double x);
/* Bits of sign, exponent and fraction together. */
int narrow_width(enum narrow f);
double narrow_smallest_normal(enum narrow f);
double narrow_smallest(enum narrow f);
/* Bits of sign, exponent and fraction: "0 10000010 0100000". */
const char *narrow_text(enum narrow f, double x, char buffer[NARROW_TEXT]);
/* The format whose name or dtype is `word`; NARROW_FORMATS: none. */
enum narrow narrow_find(const char *word);

#endif
