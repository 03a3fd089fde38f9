/* number_format.h - the table of number formats, and rounding to them in double precision.
 *
 * Functions pass a number of a format as the double with the same value. They round to the nearest
 * number, ties to even. A double has at least two bits more than twice the significand bits of each
 * format, so the double sum of two numbers, rounded to the format, is the correctly rounded sum
 * (Figueroa, 1995). */
#ifndef LAB_NUMBER_FORMAT_H
#define LAB_NUMBER_FORMAT_H

#include "base/base.h"

enum { NUMBER_TEXT = 40 };

enum number_kind {
    NUMBER_FP32,
    NUMBER_TF32,
    NUMBER_FP16,
    NUMBER_BF16,
    NUMBER_E4M3,
    NUMBER_E5M2,
    NUMBER_KINDS
};

struct number_format {
    const char *name;       /* "fp16" */
    const char *dtype;      /* "float16", as --dtype takes it */
    int exponent, fraction; /* bits of each, without the sign bit */
    int least, most;        /* exponents of the smallest and of the largest normal number */
    double largest;
    uint32_t nan;           /* the bits of a NaN */
    bool infinities;        /* false: the format has none, and the highest exponent has numbers */
    bool saturates;         /* conversions turn a number beyond `largest` into `largest` */
    const char *conversion; /* PTX instruction: "cvt.rn.f16.f32" */
};

extern const struct number_format number_formats[NUMBER_KINDS];

/* The nearest number of the format. If x is beyond the largest number: infinity or, if the format
 * saturates, the largest number. */
double number_round(enum number_kind f, double x);
/* Convert between a number of the format and its bits (the sign is the highest bit). */
uint32_t number_bits(enum number_kind f, double x);
double number_value(enum number_kind f, uint32_t bits);
/* The distance from a number of the format to the next number of larger magnitude, as if exponents
 * were unlimited; NAN for infinity and NaN. */
double number_spacing(enum number_kind f, double x);
/* Bits of sign, exponent and fraction together. */
int number_width(enum number_kind f);
double number_smallest_normal(enum number_kind f);
double number_smallest(enum number_kind f);
/* Bits of sign, exponent and fraction: "0 10000010 0100000". */
const char *number_text(enum number_kind f, double x, char buffer[NUMBER_TEXT]);
/* The format whose name or dtype is `word`; NUMBER_KINDS: none. */
enum number_kind number_find(const char *word);

#endif
