/* gelu.cu - GELU, its slope, and gradients through it, of flat tensors. T_X: the type of all; TANH: the approximation.
 *
 * Bound by memory: 2 accesses of each element (gelu), 3 (gelu_both, gelu_grad), in bf16 with 15 to 25 instructions, where
 * the processors could do 27 to 40 in the time of the accesses. */
#include "gelu.cuh"

#define THREADS 256
enum { N = 16 / (int)sizeof(T_X), TIMES = 16 / N }; /* 16 elements a thread, 16 bytes an access */

DEVICE point point_of(float x)
{
    return gelu_point<T_X, TANH>(x);
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
