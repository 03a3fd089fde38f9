/* add.h - one addition in a number format, step by step, as hardware does it.
 *
 * A significand is an integer of `fraction` bits after the point. While two of them are added they
 * have three bits more: guard, round, and sticky, which is 1 if any bit beyond them is 1. */
#ifndef LAB_ADD_H
#define LAB_ADD_H

#include "lab/narrow.h"

enum { ADD_EXTRA = 3 }; /* guard, round, sticky */

struct add_number {
    bool negative;
    uint32_t significand;
    int exponent; /* the number is significand x 2^(exponent - fraction) */
};

struct addition {
    enum narrow format;
    double given[2], term[2]; /* as typed; rounded to the format */
    double result;
    /* term[0] + term[1] = exact + rest: the nearest double, and what that leaves, if it can be
     * represented. */
    double exact, rest;
    /* A term or the sum is infinite or NaN: what follows is not set. */
    bool special;
    struct add_number of[2];
    int larger;    /* the term of the larger magnitude, which keeps its place */
    int shift;     /* places that the other one moves to the right */
    uint32_t lost; /* its bits that fall off, as an integer of `shift` bits, 32 at most */
    /* These have ADD_EXTRA more bits. */
    struct add_number aligned, sum, normal;
    int moved; /* places to the left that normalise the sum, at most `fraction`; -1: to the right */
    bool up;   /* the magnitude was rounded up */
    bool tie;  /* it was halfway between two numbers */
    bool carried;              /* rounding up made it a power of two */
    struct add_number rounded; /* before the largest number is considered */
    bool overflow;             /* rounded is beyond the largest number */
};

void add_numbers(enum narrow f, double a, double b, struct addition *ret);

#endif
