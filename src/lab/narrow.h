/* narrow.h - THE table of number formats, and rounding to them in double precision.
 *
 * A number of a format is a double that has this value. Rounding goes to the nearest number, ties
 * to even. Double has at least twice the significand bits of every format plus two, so a double
 * sum of two numbers rounded to the format is the correctly rounded sum (Figueroa, 1995). */
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
    int exponent, fraction; /* bits; the sign is one more */
    int least, most;        /* exponents of the smallest and of the largest normal number */
    double largest;
    uint32_t nan;           /* the bits of a NaN */
    bool infinities;        /* e4m3 uses their bits for numbers */
    bool saturates;         /* beyond the largest number a conversion gives it, not infinity */
    const char *conversion; /* of a GPU, in PTX: "cvt.rn.f16.f32" */
};

extern const struct narrow_format narrow_formats[NARROW_FORMATS];

/* The nearest number of the format; beyond the largest one infinity or, if the format saturates,
 * the largest one. */
double narrow_round(enum narrow f, double x);
/* The bits of a number of the format, sign first; the number that bits mean. */
uint32_t narrow_bits(enum narrow f, double x);
double narrow_value(enum narrow f, uint32_t bits);
/* The distance from a number of the format to the next one of larger magnitude, also where that
 * one would be beyond the largest; NAN of infinity and NaN. */
double narrow_spacing(enum narrow f, double x);
/* Sign, exponent and fraction together. */
int narrow_width(enum narrow f);
double narrow_smallest_normal(enum narrow f);
double narrow_smallest(enum narrow f);
/* "0 10000010 0100000": sign, exponent, fraction. */
const char *narrow_text(enum narrow f, double x, char buffer[NARROW_TEXT]);
/* The format of that name or dtype; NARROW_FORMATS: none. */
enum narrow narrow_find(const char *word);

#endif
