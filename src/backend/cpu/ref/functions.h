/* functions.h - the pointwise operators as scalar functions, in double. */
#ifndef BACKEND_CPU_REF_FUNCTIONS_H
#define BACKEND_CPU_REF_FUNCTIONS_H

#include "graph/op.h"

#include <math.h>

/* Index into a broadcast operand for element i of a tensor whose rows have `columns` elements;
 * the operand has `trailing` elements. */
static inline int64_t broadcast_index(enum broadcast how, int64_t i, int64_t columns,
                                      int64_t trailing)
{
    return how == BROADCAST_SCALAR     ? 0
           : how == BROADCAST_ROW      ? i / columns
           : how == BROADCAST_TRAILING ? i % trailing
                                       : i;
}

static inline double add(double a, double b)
{
    return a + b;
}
static inline double sub(double a, double b)
{
    return a - b;
}
static inline double mul(double a, double b)
{
    return a * b;
}
static inline double divide(double a, double b)
{
    return a / b;
}
static inline double at_most(double x, double limit)
{
    return x > limit ? limit : x; /* NaN stays NaN */
}

/* Functions of one operand have a second, unused one, so that all have one type. */
#define OF_ONE(name, expression)                       \
    static inline double name(double x, double unused) \
    {                                                  \
        (void)unused;                                  \
        return expression;                             \
    }
OF_ONE(exp_of, exp(x))
OF_ONE(log_of, log(x))
OF_ONE(sqrt_of, sqrt(x))
OF_ONE(rsqrt_of, 1 / sqrt(x))
OF_ONE(tanh_of, tanh(x))
OF_ONE(erf_of, erf(x))

OF_ONE(relu, x < 0 ? 0 : x) /* NaN stays NaN */
/* a where b > 0, else 0: the gradient of relu. */
static inline double where_positive(double a, double b)
{
    return b > 0 ? a : 0;
}
/* a where b is not > 0, else 0. */
static inline double where_not_positive(double a, double b)
{
    return b > 0 ? 0 : a;
}
OF_ONE(elu, x < 0 ? expm1(x) : x)
static inline double elu_grad(double dy, double y)
{
    return y < 0 ? dy * (y + 1) : dy;
}

static inline double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static inline double silu(double x)
{
    return x * sigmoid(x);
}
OF_ONE(sigmoid_of, sigmoid(x))
OF_ONE(silu_of, silu(x))
static inline double silu_grad(double dy, double x)
{
    double s = sigmoid(x);
    return dy * s * (1 + x * (1 - s));
}

/* gelu(x) = x * Phi(x), with Phi the standard normal CDF; or the tanh approximation of gelu. */
static inline double gelu(double x, bool approximate)
{
    if (!approximate) return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    return 0.5 * x * (1 + tanh(sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
}

static inline double gelu_derivative(double x, bool approximate)
{
    if (!approximate)
        return 0.5 * (1 + erf(x * M_SQRT1_2)) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
    double t = tanh(sqrt(M_2_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(M_2_PI) * (1 + 3 * 0.044715 * x * x);
}

#endif
