/* accumulate.h - adds 0.01 a thousand times in several formats, to show what rounding does.
 *
 * fp16 and bf16 are emulated: double has at least twice their significand bits plus two, so a
 * double sum rounded to the format is the hardware's result (Figueroa, 1995). Ties go to even. */
#ifndef LAB_ACCUMULATE_H
#define LAB_ACCUMULATE_H

#include "base/base.h"

enum { ACCUMULATE_TIMES = 1000, ACCUMULATIONS = 8, NARROW_TEXT = 40 };

enum narrow { NARROW_FP32, NARROW_FP16, NARROW_BF16, NARROW_FORMATS };
/* The nearest number of the format, ties to even; infinity beyond the largest one. */
double narrow_round(enum narrow f, double x);
/* The bits of a number of the format, 32 or 16, sign first. */
uint32_t narrow_bits(enum narrow f, double x);
/* "0 10000010 0100000": sign, exponent, fraction. */
const char *narrow_text(enum narrow f, double x, char buffer[NARROW_TEXT]);

struct accumulation {
    const char *name, *why; /* "fp32 += fp16"; a sentence */
    enum narrow of_sum, of_addend;
    bool kahan;         /* compensated summation: adds the rounding error in the next step */
    double addend, sum; /* exact values of the formats */
    int stuck;          /* the last addition that changed the sum; 0: the sum grew to the end */
};

void accumulate_all(struct accumulation ret[ACCUMULATIONS]);

#endif
