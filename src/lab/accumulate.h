/* accumulate.h - a thousand times 0.01, added up in several types: what rounding does to a sum.
 *
 * fp16 and bf16 are made in software: sums and differences of such numbers are exact in double, or are rounded there to more than twice as
 * many bits and two, so rounding once more gives what hardware of that type gives (Figueroa, 1995). Ties go to even. */
#ifndef LAB_ACCUMULATE_H
#define LAB_ACCUMULATE_H

#include "base/base.h"

enum { ACCUMULATE_TIMES = 1000, ACCUMULATIONS = 8, NARROW_TEXT = 40 };

/* THE list of formats. */
enum narrow { NARROW_FP32, NARROW_FP16, NARROW_BF16, NARROW_FORMATS };
/* "fp32" */
const char *narrow_name(enum narrow f);
/* The nearest number of the format, ties to even; beyond the largest one, infinity. */
double narrow_round(enum narrow f, double x);
/* The bits of a number of the format, the sign in front: 32 or 16. */
uint32_t narrow_bits(enum narrow f, double x);
/* "0 10000010 0100000": sign, exponent, fraction. */
const char *narrow_text(enum narrow f, double x, char buffer[NARROW_TEXT]);

struct accumulation {
    const char *name, *why; /* "fp32 += fp16"; a sentence */
    enum narrow of_sum, of_addend;
    bool kahan;         /* what is rounded away is carried along and added the next time */
    double addend, sum; /* exactly as the formats have them */
    int stuck; /* the addition after which nothing changed any more; 0: it went on to the end */
};

void accumulate_all(struct accumulation ret[ACCUMULATIONS]);

#endif
