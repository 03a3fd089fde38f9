/* formula_exact.h - random tensors and the exact results of a formula, for formula_run.c.
 *
 * Tensors repeat FORMULA_POINTS random numbers, so the exact results of a tensor of any size are
 * those of that many points. The number is prime: no tile is as long. */
#ifndef LAB_FORMULA_EXACT_H
#define LAB_FORMULA_EXACT_H

#include "lab/formula_run.h"

enum { FORMULA_POINTS = 16381, FORMULA_OUTPUTS = 1 + FORMULA_TENSORS };

struct formula_exact {
    int64_t points;
    enum dtype dtype;
    void *in[FORMULA_TENSORS + 1]; /* points of each tensor, and of df, in their type */
    /* Of the value, and of the gradient of each tensor; NULL: there is none. */
    struct formula_expected {
        double *x;                              /* exact */
        double *off[FORMULA_VARIANTS];          /* how far rounding may move it */
        unsigned char *judge[FORMULA_VARIANTS]; /* false: not finite, or too close to a jump */
    } out[FORMULA_OUTPUTS];
};

/* `n`: at most that many points are needed. */
enum status formula_exact(const struct formula_options *o, const struct formula_uses *uses,
                          int64_t n, struct formula_exact *ret, struct arena *a);
/* The relative error of `n` elements by norm, what is allowed, and the share of elements that are
 * not judged. Allowed is the rounding of `operators` factors of a product, or more where rounding
 * each operation of the formula may change more. */
struct formula_judged {
    double error, allowed, unjudged;
    int64_t worst; /* the element that is furthest off */
};
struct formula_judged formula_judge(const struct formula_exact *e, int output,
                                    enum formula_variant v, int operators, const double *y,
                                    int64_t n);

#endif
