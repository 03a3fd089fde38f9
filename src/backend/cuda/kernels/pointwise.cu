/* pointwise.cu - arithmetic on elements: functions of one, two that meet, constants, copies and casts.
 *
 * T_X: the type of all operands. Bound by memory: every input is read once, every output written once, 16 bytes a
 * thread and access. An output may be the memory of an input of its shape: a thread reads its elements before it
 * writes them. */
#include "arithmetic.cuh"

/* 16 elements of one operand, or 8 of each of two, are in flight in a thread. */
enum { N = per_access<T_X>::N, STEP = THREADS * N, TIMES = 16 / N, PAIRS = 8 / N };

/* --- of one --- */

template <typename F> DEVICE void unary(const T_X *x, T_X *y, i64 n, float constant)
{
    const i64 first = first_element<N, TIMES>(), left = left_element<N>(n);
    floats<N> a[TIMES];
#pragma unroll
    for (int k = 0; k < TIMES; k++)
        if (first + k * STEP + N <= n) a[k] = load<N>(x + first + k * STEP);
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP + N > n) continue;
#pragma unroll
        for (int e = 0; e < N; e++) a[k][e] = F::of(a[k][e], constant);
        store<N>(y + first + k * STEP, a[k]);
    }
    if (left < n) y[left] = to<T_X>(F::of(to_float(x[left]), constant));
}

#define UNARY(name, expression)                                                        \
    struct name##_each {                                                               \
        DEVICE float of(float x, float constant) { return expression; }                \
    };                                                                                 \
    KERNEL(THREADS) each_##name(const T_X *x, T_X *y, i64 n, float constant)           \
    {                                                                                  \
        unary<name##_each>(x, y, n, constant);                                         \
    }

UNARY(scale, scale_of(x, constant))
UNARY(offset, offset_of(x, constant))
UNARY(at_most, at_most_of(x, constant))
UNARY(exp, exp_of(x))
UNARY(log, log_of(x))
UNARY(sqrt, sqrt_of(x))
UNARY(rsqrt, rsqrt_of(x))
UNARY(tanh, tanh_of(x))
UNARY(erf, erf_of(x))
UNARY(relu, relu_of(x))
UNARY(elu, elu_of(x))
UNARY(silu, silu_of(x))

KERNEL(THREADS) fill(T_X *y, i64 n, float constant)
{
    const i64 first = first_element<N, TIMES>(), left = left_element<N>(n);
    floats<N> a = all_of<N>(constant);
#pragma unroll
    for (int k = 0; k < TIMES; k++)
        if (first + k * STEP + N <= n) store<N>(y + first + k * STEP, a);
    if (left < n) y[left] = to<T_X>(constant);
}

/* --- of two; the second meets the first in one of four ways (arithmetic.cuh) --- */

template <typename F, typename B>
DEVICE void binary(const T_X *x, const T_X *b, T_X *y, i64 n, int period)
{
    const i64 first = first_element<N, PAIRS>(), left = left_element<N>(n);
    floats<N> a[PAIRS], c[PAIRS];
#pragma unroll
    for (int k = 0; k < PAIRS; k++) {
        if (first + k * STEP + N > n) continue;
        a[k] = load<N>(x + first + k * STEP);
        c[k] = B::template of<N>(b, first + k * STEP, period);
    }
#pragma unroll
    for (int k = 0; k < PAIRS; k++) {
        if (first + k * STEP + N > n) continue;
#pragma unroll
        for (int e = 0; e < N; e++) a[k][e] = F::of(a[k][e], c[k][e]);
        store<N>(y + first + k * STEP, a[k]);
    }
    if (left < n) y[left] = to<T_X>(F::of(to_float(x[left]), B::at(b, left, period)));
}

#define BINARY_HOW(name, how)                                                          \
    KERNEL(THREADS) name##_##how(const T_X *x, const T_X *b, T_X *y, i64 n, int period) \
    {                                                                                  \
        binary<name##_each, how>(x, b, y, n, period);                                  \
    }
/* Of one shape. */
#define PAIRS_OF(name)                                                                 \
    struct name##_each {                                                               \
        DEVICE float of(float a, float b) { return name##_of(a, b); }                  \
    };                                                                                 \
    BINARY_HOW(name, same)
#define BINARY(name)                                                                   \
    PAIRS_OF(name)                                                                     \
    BINARY_HOW(name, scalar)                                                           \
    BINARY_HOW(name, per_row)                                                          \
    BINARY_HOW(name, trailing)

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
PAIRS_OF(relu_grad)
PAIRS_OF(elu_grad)
PAIRS_OF(silu_grad)

/* --- moved as they are, or to the other type; not of T_X --- */

enum { COPIES = 4 };

KERNEL(THREADS) copy(const u8 *x, u8 *y, i64 bytes)
{
    const i64 first = first_element<16, COPIES>(), left = left_element<16>(bytes);
    uint4 a[COPIES];
#pragma unroll
    for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 16 + 16 <= bytes) a[k] = *(const uint4 *)(x + first + k * THREADS * 16);
#pragma unroll
    for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 16 + 16 <= bytes) *(uint4 *)(y + first + k * THREADS * 16) = a[k];
    if (left < bytes) y[left] = x[left];
}

/* Four elements a time: 16 bytes of floats, 8 of the others. */
template <typename A, typename B> DEVICE void cast(const A *x, B *y, i64 n)
{
    const i64 first = first_element<4, COPIES>(), left = left_element<4>(n);
    floats<4> a[COPIES];
#pragma unroll
    for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 4 + 4 <= n) a[k] = load<4>(x + first + k * THREADS * 4);
#pragma unroll
    for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 4 + 4 <= n) store<4>(y + first + k * THREADS * 4, a[k]);
    if (left < n) y[left] = to<B>(to_float(x[left]));
}
KERNEL(THREADS) narrow(const float *x, bf16 *y, i64 n)
{
    cast(x, y, n);
}
KERNEL(THREADS) widen(const bf16 *x, float *y, i64 n)
{
    cast(x, y, n);
}
