/* checked.h - arithmetic on sizes and counts that come from a user or a file, without overflow.
 *
 * size_* saturate: a result that is too large is SIZE_TOO_LARGE, which stays too large in further
 * sums and products, so one comparison at the end suffices. Operands are not negative. checked_*
 * accept any operands and return false if the result does not fit. */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include "base/base.h"

#define SIZE_TOO_LARGE INT64_MAX

static inline bool checked_add(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}
static inline bool checked_mul(int64_t a, int64_t b, int64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline int64_t size_add(int64_t a, int64_t b)
{
    int64_t sum;
    return checked_add(a, b, &sum) ? sum : SIZE_TOO_LARGE;
}
static inline int64_t size_mul(int64_t a, int64_t b)
{
    int64_t product;
    return checked_mul(a, b, &product) ? product : SIZE_TOO_LARGE;
}
/* The next multiple of a positive `to`. */
static inline int64_t size_round_up(int64_t n, int64_t to)
{
    int64_t rest = n % to;
    return rest ? size_add(n, to - rest) : n;
}

/* `x` as an integer, rounded towards zero and clamped to the range of int64_t; `if_nan` for NaN. A
 * plain cast is undefined for NaN and for values out of range. */
static inline int64_t int64_of(double x, int64_t if_nan)
{
    if (x != x) return if_nan;
    if (x >= 0x1p63) return INT64_MAX;
    return x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

#endif
