/* gelu.cu - GELU, its slope, its gradient, for flat tensors. T_X: type; TANH: approximation.
 *
 * Bound by memory: 2 accesses per element (gelu) or 3 (gelu_both, gelu_grad). In bf16 an element
 * takes 15 to 25 instructions; the SMs could do 27 to 40 in the time of its accesses. */
#include "gelu.cuh"

#define THREADS 256
/* 16 elements per thread, 16 bytes per access */
enum { N = 16 / (int)sizeof(T_X), TIMES = 16 / N };

DEVICE point point_of(float x)
{
    return gelu_point<T_X, TANH>(x);
}

/* Start of this thread's k-th vector. The tail after the last whole vector, fewer than N elements,
 * goes to the first threads of the last block; other threads get n. */
DEVICE i64 vector_at(int k)
{
    return (((i64)blockIdx.x * TIMES + k) * THREADS + threadIdx.x) * N;
}
DEVICE i64 tail_at(i64 n)
{
    i64 i = n / N * N + threadIdx.x;
    return blockIdx.x == gridDim.x - 1 && i < n ? i : n;
}

DEVICE void load_all(floats<N> (&v)[TIMES], const T_X *x, i64 n)
{
    UNROLL for (int k = 0; k < TIMES; k++)
        if (vector_at(k) + N <= n) v[k] = load<N>(x + vector_at(k));
}

KERNEL(THREADS) gelu(T_X *y, const T_X *x, i64 n)
{
    floats<N> v[TIMES];
    load_all(v, x, n);
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (vector_at(k) + N > n) continue;
        UNROLL for (int e = 0; e < N; e++) v[k][e] = point_of(v[k][e]).y;
        store<N>(y + vector_at(k), v[k]);
    }
    i64 i = tail_at(n);
    if (i < n) y[i] = to<T_X>(point_of(to_float(x[i])).y);
}

/* y may be x. */
KERNEL(THREADS) gelu_both(T_X *y, T_X *slope, const T_X *x, i64 n)
{
    floats<N> v[TIMES];
    load_all(v, x, n);
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (vector_at(k) + N > n) continue;
        floats<N> s;
        UNROLL for (int e = 0; e < N; e++) {
            point p = point_of(v[k][e]);
            v[k][e] = p.y;
            s[e] = p.slope;
        }
        store<N>(y + vector_at(k), v[k]);
        store<N>(slope + vector_at(k), s);
    }
    i64 i = tail_at(n);
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
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (vector_at(k) + N > n) continue;
        UNROLL for (int e = 0; e < N; e++) d[k][e] *= point_of(v[k][e]).slope;
        store<N>(dx + vector_at(k), d[k]);
    }
    i64 i = tail_at(n);
    if (i < n) dx[i] = to<T_X>(to_float(dy[i]) * point_of(to_float(x[i])).slope);
}
