/* gelu.cu - GELU, its slope, and gradients through it, of flat tensors. T_X: the type of all; TANH: the approximation.
 *
 * gelu(x) = x P(x), where P is the normal distribution function or, with the tanh approximation, the logistic function
 * of 2u, u = sqrt(2/pi) (x + 0.044715 x^3); tanh u = 2 P - 1. P(-z) is e^(-z^2/2) times a slow function of z, and the
 * slope needs the same exponential: P' = e^(-x^2/2) / sqrt(2 pi). So one exponential, one inverse and a polynomial do both.
 *
 * Bound by memory: 2 accesses of each element (gelu), 3 (gelu_both, gelu_grad), in bf16 with 15 to 25 instructions, where
 * the processors could do 27 to 40 in the time of the accesses. */
#include "rows.cuh"

#define THREADS 256
enum { N = 16 / (int)sizeof(T_X), TIMES = 16 / N }; /* 16 elements a thread, 16 bytes an access */

struct point {
    float y, slope; /* gelu(x), gelu'(x) */
};

/* The polynomials are the best of their degrees, and their degrees the least whose error is lost in the rounding of a
 * result: 2e-7 in float, 1e-4 in bf16. */
DEVICE float tail_of(float z) /* P(-z) / e^(-z^2/2) */
{
    if constexpr (sizeof(T_X) == 2) {
        float t = inverse_of(0.38f * z + 1.0f);
        return ((((-0.0899283276f * t + 0.18887642f) * t + 0.0919797830f) * t + 0.157829459f) * t +
                0.151225138f) * t;
    } else {
        float t = inverse_of(0.31f * z + 1.0f);
        float q = ((0.0357725981f * t - 0.141343887f) * t + 0.154661803f) * t - 0.0145614533f;
        q = ((q * t + 0.109938557f) * t + 0.107823866f) * t + 0.124050934f;
        return (q * t + 0.123657654f) * t;
    }
}

DEVICE point normal(float x)
{
    float z = fabsf(x);
    z = z > 18.0f ? 18.0f : z; /* beyond that P is 0 or 1 to the last bit; a NaN stays one */
    float bell = ex2_approx(-0.721347520f * z * z), q = tail_of(z);
    /* y = x P(-z) for negative x, x - x P(-z) for others, and the slopes add to 1. */
    float left = bell * (q - 0.398942280f * z);
    point r = {fmaxf(x, 0.0f) - z * (q * bell), x < 0.0f ? left : 1.0f - left};
    return r;
}

DEVICE point logistic(float x)
{
    float square = x * x;
    float p = inverse_of(1.0f + ex2_approx(x * (-0.102943240f * square - 2.30220820f))); /* e^-2u */
    /* Beyond 11 the slope is 0 or 1, and x^2 could be infinite. */
    float bent = fminf(fmaxf(x, -11.0f), 11.0f);
    float slope = p * (1.0f - p) * (0.214064449f * (bent * bent) + 1.59576912f);
    point r = {x * p, p + bent * slope};
    return r;
}

DEVICE point point_of(float x)
{
    return TANH ? logistic(x) : normal(x);
}

/* Where the k-th vector of this thread begins; what is left after the last whole vector, fewer than N elements, falls
 * to the first threads of the last block (others are given n). */
DEVICE i64 vector_at(int k)
{
    return (((i64)blockIdx.x * TIMES + k) * THREADS + threadIdx.x) * N;
}
DEVICE i64 left_at(i64 n)
{
    i64 i = n / N * N + threadIdx.x;
    return blockIdx.x == gridDim.x - 1 && i < n ? i : n;
}

DEVICE void load_all(floats<N> (&v)[TIMES], const T_X *x, i64 n)
{
#pragma unroll
    for (int k = 0; k < TIMES; k++)
        if (vector_at(k) + N <= n) v[k] = load<N>(x + vector_at(k));
}

KERNEL(THREADS) gelu(T_X *y, const T_X *x, i64 n)
{
    floats<N> v[TIMES];
    load_all(v, x, n);
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        if (vector_at(k) + N > n) continue;
#pragma unroll
        for (int e = 0; e < N; e++) v[k][e] = point_of(v[k][e]).y;
        store<N>(y + vector_at(k), v[k]);
    }
    i64 i = left_at(n);
    if (i < n) y[i] = to<T_X>(point_of(to_float(x[i])).y);
}

/* y may be x. */
KERNEL(THREADS) gelu_both(T_X *y, T_X *slope, const T_X *x, i64 n)
{
    floats<N> v[TIMES];
    load_all(v, x, n);
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        if (vector_at(k) + N > n) continue;
        floats<N> s;
#pragma unroll
        for (int e = 0; e < N; e++) {
            point p = point_of(v[k][e]);
            v[k][e] = p.y;
            s[e] = p.slope;
        }
        store<N>(y + vector_at(k), v[k]);
        store<N>(slope + vector_at(k), s);
    }
    i64 i = left_at(n);
    if (i >= n) return;
    point p = point_of(to_float(x[i]));
    y[i] = to<T_X>(p.y);
    slope[i] = to<T_X>(p.slope);
}

/* dx may be dy or x. */
KERNEL(THREADS) gelu_grad(T_X *dx, const T_X *dy, const T_X *x, i64 n)
{
    floats<N> v[TIMES], d[TIMES];
    load_all(v, x, n);
    load_all(d, dy, n);
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        if (vector_at(k) + N > n) continue;
#pragma unroll
        for (int e = 0; e < N; e++) d[k][e] *= point_of(v[k][e]).slope;
        store<N>(dx + vector_at(k), d[k]);
    }
    i64 i = left_at(n);
    if (i < n) dx[i] = to<T_X>(to_float(dy[i]) * point_of(to_float(x[i])).slope);
}
