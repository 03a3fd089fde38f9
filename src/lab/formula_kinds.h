/* formula_kinds.h - the table of operators and functions of formulas; private to formula*.c. */
#ifndef LAB_FORMULA_KINDS_H
#define LAB_FORMULA_KINDS_H

#include "lab/formula.h"

struct formula_function {
    const char *name;
    int args;
    double (*of)(double x);              /* the function, if it has one argument; else NULL */
    double (*slope)(double x, double y); /* the derivative of `of` at x, where y = of(x) */
};

extern const struct formula_function formula_kinds[FORMULA_KINDS];

#endif
