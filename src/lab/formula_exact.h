/* formula_exact.h - random tensors and the exact results of a formula, for formula_run.c.
 *
 * Tensors repeat FORMULA_POINTS random numbers, so exact results are needed only for that many
 * points, however large the tensor is. The number is prime, so the repetition never coincides with
 * the tiles of a kernel. */
#ifndef LAB_FORMULA_EXACT_H
#define LAB_FORMULA_EXACT_H

#include "lab/formula_run.h"

enum { FORMULA_POINTS = 16381, FORMULA_OUTPUTS = 1 + FORMULA_TENSORS };

struct formula_exact {
    int64_t points;
    enum dtype dtype;
    void *in[FORMULA_TENSORS + 1]; /* points of each tensor, and of df, in `dtype` */
    /* Of the value, then of the gradient of each tensor; pointers are NULL without a gradient. */
    struct formula_expected {
        double *x;                              /* exact */
        double *off[FORMULA_VARIANTS];          /* bound of the rounding error */
        unsigned char *judge[FORMULA_VARIANTS]; /* 0: not checked: not finite, or close to a jump */
    } out[FORMULA_OUTPUTS];
};

/* Computes inputs and exact results of min(n, FORMULA_POINTS) points in `a`. */
enum status formula_exact(const struct formula_options *o, const struct formula_uses *uses,
                          int64_t n, struct formula_exact *ret, struct arena *a);
/* The relative error of `n` elements by norm, the allowed error, and the share of elements that are
 * not checked. The allowed error is the larger of two numbers: `operators` roundings, and twice the
 * bound from rounding each operation of the formula. */
struct formula_judged {
    double error, allowed, unjudged;
    int64_t worst; /* the element with the largest error */
};
struct formula_judged formula_judge(const struct formula_exact *e, int output,
                                    enum formula_variant v, int operators, const double *y,
                                    int64_t n);

#endif
