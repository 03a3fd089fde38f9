/* accumulate.h - adds 0.01 a thousand times in several formats, to show what rounding does. */
#ifndef LAB_ACCUMULATE_H
#define LAB_ACCUMULATE_H

#include "lab/number_format.h"

enum { ACCUMULATE_TIMES = 1000, ACCUMULATIONS = 8 };

struct accumulation {
    const char *name, *why; /* "fp32 += fp16"; a sentence that explains the sum */
    enum number_kind of_sum, of_addend;
    bool kahan;         /* compensated summation: each step adds the last step's rounding error */
    double addend, sum; /* numbers of their formats */
    int stuck; /* the last addition that changed the sum; 0: the sum grew to the end, or `kahan` */
};

void accumulate_all(struct accumulation ret[ACCUMULATIONS]);

#endif
