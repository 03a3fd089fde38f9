/* wrong.h - says where the output of a rung differs from the solution. */
#ifndef LAB_WRONG_H
#define LAB_WRONG_H

#include "base/arena.h"
#include "lab/lab.h"

struct lab_where {
    const char *words;
    double share; /* of the elements that are wrong; the smaller, the more the words tell */
};

/* "row 128, column 3 is 0 instead of 1.37; 400 of 800 elements are wrong, all in rows from 128 on:
 * is the last tile guarded?" An element counts as wrong if it is off by more than the allowed error
 * of the whole output explains; if none is, the errors are spread. `norm`: what errors are relative
 * to; `allowed`: relative, by norm. */
struct lab_where lab_wrong_words(const struct lab_problem *p, const double *y,
                                 const double *expected, double norm, double allowed,
                                 struct arena *a);

#endif
