/* describe_errors.h - describes where the output of a rung differs from the solution. */
#ifndef LAB_DESCRIBE_ERRORS_H
#define LAB_DESCRIBE_ERRORS_H

#include "base/arena.h"
#include "lab/lab.h"

struct lab_where {
    const char *words;
    double share; /* wrong elements / elements; words about few wrong elements help most */
};

/* "row 128, column 3 is 0 instead of 1.37; 400 of 800 elements are wrong, all in rows from 128 on:
 * is the last tile guarded?" An element counts as wrong if its error is more than 8 times the
 * allowed root mean square error; if no element is, the words say that all elements are a little
 * off. `norm` is the number that errors are divided by, `allowed` the allowed relative error by
 * norm. */
struct lab_where lab_describe_errors(const struct lab_problem *p, const double *y,
                                     const double *expected, double norm, double allowed,
                                     struct arena *a);

#endif
