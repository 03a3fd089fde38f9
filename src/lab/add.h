/* add.h - one addition in a number format, step by step, as hardware does it.
 *
 * A significand is an integer whose last `fraction` bits are after the binary point. The addition
 * appends three bits: guard, round and sticky. The sticky bit is 1 if any bit further to the right
 * is 1. */
#ifndef LAB_ADD_H
#define LAB_ADD_H

#include "lab/number_format.h"

enum { ADD_EXTRA = 3 }; /* guard, round, sticky */

struct add_number {
    bool negative;
    uint32_t significand;
    int exponent; /* the number is significand x 2^(exponent - fraction) */
};

struct addition {
    enum number_kind format;
    double given[2], term[2]; /* the caller's numbers; these numbers rounded to the format */
    double result;
    /* term[0] + term[1] = exact + rest, where exact is the nearest double. */
    double exact, rest;
    bool special; /* a term is infinite or NaN; the fields below are not set */
    struct add_number of[2];
    int larger;    /* index of the term with the larger magnitude, which is not shifted */
    int shift;     /* bits that the significand of the smaller term is shifted to the right */
    uint32_t lost; /* the bits that this shift drops, as an integer of min(shift, 32) bits */
    /* The significands of these three numbers have ADD_EXTRA more bits. */
    struct add_number aligned, sum, normal;
    int moved; /* bits by which the sum is shifted left to normalize it; -1: shifted right by 1 */
    bool up;   /* the magnitude was rounded up */
    bool tie;  /* the sum was halfway between two numbers */
    bool carried;              /* rounding up made the significand a power of two */
    struct add_number rounded; /* the sum if exponents were unlimited */
    bool overflow;             /* rounded is larger than the format's largest number */
};

void add_numbers(enum number_kind f, double a, double b, struct addition *ret);

#endif
