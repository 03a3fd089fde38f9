/* formula_kinds.h - THE table of operators and functions of formulas; private to formula*.c. */
#ifndef LAB_FORMULA_KINDS_H
#define LAB_FORMULA_KINDS_H

#include "lab/formula.h"

struct formula_function {
    const char *name;
    int args;
    double (*of)(double x);              /* of one argument, and */
    double (*slope)(double x, double y); /* its derivative; y: the value there */
};

extern const struct formula_function formula_kinds[FORMULA_KINDS];

#endif
