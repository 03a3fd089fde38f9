/* pointwise.cu - arithmetic on elements: unary and binary functions, constants, copies and casts.
 *
 * T_X: type of all operands. Bound by memory: every input is read once, every output written once,
 * 16 bytes per access. An output may share memory with an input of its shape: a thread reads its
 * elements before it writes them. */
#include "arithmetic.cuh"

/* A thread has 16 elements of one operand, or 8 of each of two, in flight. */
enum { N = per_access<T_X>::N, STEP = THREADS * N, TIMES = 16 / N, PAIRS = 8 / N };

/* --- unary --- */

template <typename F> DEVICE void unary(const T_X *x, T_X *y, i64 n, float constant)
{
    const i64 first = first_element<N, TIMES>(), tail = tail_element<N>(n);
    floats<N> a[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++)
        if (first + k * STEP + N <= n) a[k] = load<N>(x + first + k * STEP);
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP + N > n) continue;
        UNROLL for (int e = 0; e < N; e++) a[k][e] = F::of(a[k][e], constant);
        store<N>(y + first + k * STEP, a[k]);
    }
    if (tail < n) y[tail] = to<T_X>(F::of(to_float(x[tail]), constant));
}

#define UNARY(entry, expression)                                                       \
    struct of_##entry {                                                                \
        DEVICE float of(float x, float constant) { return expression; }                \
    };                                                                                 \
    KERNEL(THREADS) entry(const T_X *x, T_X *y, i64 n, float constant)                 \
    {                                                                                  \
        unary<of_##entry>(x, y, n, constant);                                          \
    }

UNARY(each_scale, scale_of(x, constant))
UNARY(each_offset, offset_of(x, constant))
UNARY(each_at_most, at_most_of(x, constant))
UNARY(each_exp, exp_of<T_X>(x))
UNARY(each_log, log_of(x))
UNARY(each_sqrt, sqrt_of(x))
UNARY(each_rsqrt, rsqrt_of(x))
UNARY(each_tanh, tanh_of<T_X>(x))
UNARY(each_sigmoid, sigmoid_of<T_X>(x))
UNARY(each_erf, erf_of(x))
UNARY(each_relu, relu_of(x))
UNARY(each_elu, elu_of<T_X>(x))
UNARY(each_silu, silu_of<T_X>(x))

KERNEL(THREADS) fill(T_X *y, i64 n, float constant)
{
    const i64 first = first_element<N, TIMES>(), tail = tail_element<N>(n);
    floats<N> a = all_of<N>(constant);
    UNROLL for (int k = 0; k < TIMES; k++)
        if (first + k * STEP + N <= n) store<N>(y + first + k * STEP, a);
    if (tail < n) y[tail] = to<T_X>(constant);
}

/* --- binary; the second operand is broadcast in one of four cases (arithmetic.cuh) --- */

template <typename F, typename B>
DEVICE void binary(const T_X *x, const T_X *b, T_X *y, i64 n, int period)
{
    const i64 first = first_element<N, PAIRS>(), tail = tail_element<N>(n);
    floats<N> a[PAIRS], c[PAIRS];
    UNROLL for (int k = 0; k < PAIRS; k++) {
        if (first + k * STEP + N > n) continue;
        a[k] = load<N>(x + first + k * STEP);
        c[k] = B::template of<N>(b, first + k * STEP, period);
    }
    UNROLL for (int k = 0; k < PAIRS; k++) {
        if (first + k * STEP + N > n) continue;
        UNROLL for (int e = 0; e < N; e++) a[k][e] = F::of(a[k][e], c[k][e]);
        store<N>(y + first + k * STEP, a[k]);
    }
    if (tail < n) y[tail] = to<T_X>(F::of(to_float(x[tail]), B::at(b, tail, period)));
}

/* `function` is a function of arithmetic.cuh, `how` is the broadcast of the second operand. */
#define BINARY(entry, function, how)                                                   \
    struct of_##entry {                                                                \
        DEVICE float of(float a, float b) { return function(a, b); }                   \
    };                                                                                 \
    KERNEL(THREADS) entry(const T_X *x, const T_X *b, T_X *y, i64 n, int period)       \
    {                                                                                  \
        binary<of_##entry, how>(x, b, y, n, period);                                   \
    }

BINARY(add_same, add_of, same)
BINARY(add_scalar, add_of, scalar)
BINARY(add_per_row, add_of, per_row)
BINARY(add_trailing, add_of, trailing)
BINARY(sub_same, sub_of, same)
BINARY(sub_scalar, sub_of, scalar)
BINARY(sub_per_row, sub_of, per_row)
BINARY(sub_trailing, sub_of, trailing)
BINARY(mul_same, mul_of, same)
BINARY(mul_scalar, mul_of, scalar)
BINARY(mul_per_row, mul_of, per_row)
BINARY(mul_trailing, mul_of, trailing)
BINARY(div_same, div_of, same)
BINARY(div_scalar, div_of, scalar)
BINARY(div_per_row, div_of, per_row)
BINARY(div_trailing, div_of, trailing)
BINARY(where_positive_same, where_positive_of, same)
BINARY(where_not_positive_same, where_not_positive_of, same)
BINARY(elu_grad_same, elu_grad_of, same)
BINARY(silu_grad_same, silu_grad_of<T_X>, same)

/* --- copies and casts; independent of T_X --- */

enum { COPIES = 4 };

KERNEL(THREADS) copy(const u8 *x, u8 *y, i64 bytes)
{
    const i64 first = first_element<16, COPIES>(), tail = tail_element<16>(bytes);
    uint4 a[COPIES];
    UNROLL for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 16 + 16 <= bytes)
            a[k] = *(const uint4 *)(x + first + k * THREADS * 16);
    UNROLL for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 16 + 16 <= bytes) *(uint4 *)(y + first + k * THREADS * 16) = a[k];
    if (tail < bytes) y[tail] = x[tail];
}

/* Four elements per access: 16 bytes of float, 8 of bf16. */
template <typename A, typename B> DEVICE void cast(const A *x, B *y, i64 n)
{
    const i64 first = first_element<4, COPIES>(), tail = tail_element<4>(n);
    floats<4> a[COPIES];
    UNROLL for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 4 + 4 <= n) a[k] = load<4>(x + first + k * THREADS * 4);
    UNROLL for (int k = 0; k < COPIES; k++)
        if (first + k * THREADS * 4 + 4 <= n) store<4>(y + first + k * THREADS * 4, a[k]);
    if (tail < n) y[tail] = to<B>(to_float(x[tail]));
}
KERNEL(THREADS) cast_to_bf16(const float *x, bf16 *y, i64 n)
{
    cast(x, y, n);
}
KERNEL(THREADS) cast_to_f32(const bf16 *x, float *y, i64 n)
{
    cast(x, y, n);
}
