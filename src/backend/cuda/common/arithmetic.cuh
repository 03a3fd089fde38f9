/* arithmetic.cuh - the pointwise operators on one element, and the broadcasting of a second
 * operand: for pointwise.cu and for the generated kernels of fused chains (chain_text.c).
 *
 * Sums and products are not contracted to FMAs: a chain with a result in float has the same bits as
 * its separate steps. Functions with a parameter T are as exact as type T can represent. If all
 * results of a chain are bf16, T is bf16 for all of its steps; steps in float are then less exact
 * than they would be as separate kernels. */
#pragma once
#include "rows.cuh"

#include "elements.cuh"

DEVICE float add_of(float a, float b)
{
    return __fadd_rn(a, b);
}
DEVICE float sub_of(float a, float b)
{
    return __fsub_rn(a, b);
}
DEVICE float mul_of(float a, float b)
{
    return __fmul_rn(a, b);
}
DEVICE float div_of(float a, float b)
{
    return a / b;
}
DEVICE float scale_of(float x, float constant)
{
    return __fmul_rn(x, constant);
}
DEVICE float offset_of(float x, float constant)
{
    return __fadd_rn(x, constant);
}
DEVICE float at_most_of(float x, float constant)
{
    return x > constant ? constant : x; /* NaN stays NaN */
}
template <typename T> DEVICE float exp_of(float x)
{
    return exp_for<T>(x);
}
DEVICE float log_of(float x)
{
    return logf(x);
}
DEVICE float sqrt_of(float x)
{
    return sqrtf(x);
}
DEVICE float rsqrt_of(float x)
{
    return 1.0f / sqrtf(x);
}
/* For bf16, takes one exponential, or two terms of the series near 0, where the subtraction would
 * cancel. */
template <typename T> DEVICE float tanh_of(float x)
{
    if constexpr (sizeof(T) == 2)
        return fabsf(x) < 0.03f ? x - x * x * x * (1 / 3.0f)
                                : 1 - 2 * rcp_approx(1 + exp_for<T>(2 * x));
    else
        return tanhf(x);
}
DEVICE float erf_of(float x)
{
    return erff(x);
}
DEVICE float relu_of(float x)
{
    return x < 0.0f ? 0.0f : x; /* NaN stays NaN */
}
DEVICE float where_positive_of(float a, float b)
{
    return b > 0.0f ? a : 0.0f;
}
DEVICE float where_not_positive_of(float a, float b)
{
    return b > 0.0f ? 0.0f : a;
}
template <typename T> DEVICE float elu_of(float x)
{
    return x < 0.0f ? expm1_for<T>(x) : x;
}
DEVICE float elu_grad_of(float dy, float y)
{
    return y < 0.0f ? __fmul_rn(dy, __fadd_rn(y, 1.0f)) : dy;
}
template <typename T> DEVICE float sigmoid_of(float x)
{
    if constexpr (sizeof(T) == 2) return rcp_approx(1.0f + exp_for<T>(-x));
    return 1.0f / (1.0f + expf(-x));
}
template <typename T> DEVICE float silu_of(float x)
{
    return __fmul_rn(x, sigmoid_of<T>(x));
}
template <typename T> DEVICE float silu_grad_of(float dy, float x)
{
    const float s = sigmoid_of<T>(x);
    return __fmul_rn(dy, __fadd_rn(s, __fmul_rn(__fmul_rn(x, s), 1.0f - s)));
}

/* a rounded to T, as if it had been stored. */
template <typename T> DEVICE float rounded(float a)
{
    return to_float(to<T>(a));
}

/* --- the cases of enum broadcast: `of` loads N elements from element i on, `at` element i --- */

struct same {
    template <int N, typename T>
    DEVICE floats<N> of(const T *b, i64 i, int) { return load<N>(b + i); }
    template <typename T> DEVICE float at(const T *b, i64 i, int) { return to_float(b[i]); }
};
struct scalar {
    template <int N, typename T>
    DEVICE floats<N> of(const T *b, i64, int) { return all_of<N>(to_float(b[0])); }
    template <typename T> DEVICE float at(const T *b, i64, int) { return to_float(b[0]); }
};
/* One element per row of `period` columns. */
struct per_row {
    template <int N, typename T> DEVICE floats<N> of(const T *b, i64 i, int period)
    {
        coord p = coord_of(i, period);
        if (p.column + N <= period) return all_of<N>(to_float(b[p.row]));
        floats<N> r;
        UNROLL for (int e = 0; e < N; e++) {
            r[e] = to_float(b[p.row]);
            advance(p, period);
        }
        return r;
    }
    template <typename T> DEVICE float at(const T *b, i64 i, int period)
    {
        return to_float(b[coord_of(i, period).row]);
    }
};
/* b has `period` elements, which repeat. */
struct trailing {
    template <int N, typename T> DEVICE floats<N> of(const T *b, i64 i, int period)
    {
        coord p = coord_of(i, period);
        if (period % N == 0) return load<N>(b + p.column);
        floats<N> r;
        UNROLL for (int e = 0; e < N; e++) {
            r[e] = to_float(b[p.column]);
            advance(p, period);
        }
        return r;
    }
    template <typename T> DEVICE float at(const T *b, i64 i, int period)
    {
        return to_float(b[coord_of(i, period).column]);
    }
};
