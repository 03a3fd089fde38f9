/* gated.cu - SwiGLU, y = silu(gate) up, and its gradients; silu(x) = x s, s = 1 / (1 + e^-x). T_X:
 * type of all tensors. PACKED: 1 if gate and up are the halves of each row of one tensor (...,2F),
 * used in place; 0: two tensors. EACH: elements of an access, dividing F if packed.
 *
 * Bound by memory: 3 accesses per element of y, 5 for the gradient. In bf16 an element takes 12 to
 * 20 instructions, two of them slow (2^x and the reciprocal); the SMs could do 40 in the time of
 * its accesses. */
#include "arithmetic.cuh"
#include "elements.cuh"
#include "rows.cuh"

enum { N = EACH, TIMES = N < 8 ? 4 : 2 };
#define EACH_TIME _Pragma("unroll") for (int k = 0; k < TIMES; k++)
#define EACH_ELEMENT _Pragma("unroll") for (int e = 0; e < N; e++)

/* The index in gate of element i of y. */
DEVICE i64 gate_at(i64 i, int F)
{
    return PACKED ? i + coord_of(i, F).row * F : i;
}
DEVICE i64 vector_at(int k)
{
    return (((i64)blockIdx.x * TIMES + k) * THREADS + threadIdx.x) * N;
}

KERNEL(THREADS)
swiglu(T_X *y, const T_X *gate,
#if !PACKED
       const T_X *up,
#endif
       i64 n, int F)
{
#if PACKED
    const T_X *up = gate + F;
#endif
    floats<N> g[TIMES], u[TIMES];
    EACH_TIME {
        if (vector_at(k) >= n) continue;
        const i64 at = gate_at(vector_at(k), F);
        g[k] = load<N>(gate + at);
        u[k] = load<N>(up + at);
    }
    EACH_TIME {
        if (vector_at(k) >= n) continue;
        EACH_ELEMENT g[k][e] *= sigmoid_of<T_X>(g[k][e]) * u[k][e];
        store<N>(y + vector_at(k), g[k]);
    }
}

/* dgate may be gate; with PACKED the same holds for both halves. */
KERNEL(THREADS)
swiglu_grad(T_X *dgate,
#if !PACKED
            T_X *dup,
#endif
            const T_X *dy, const T_X *gate,
#if !PACKED
            const T_X *up,
#endif
            i64 n, int F)
{
#if PACKED
    T_X *dup = dgate + F;
    const T_X *up = gate + F;
#endif
    floats<N> d[TIMES], g[TIMES], u[TIMES];
    EACH_TIME {
        if (vector_at(k) >= n) continue;
        const i64 at = gate_at(vector_at(k), F);
        d[k] = load<N>(dy + vector_at(k));
        g[k] = load<N>(gate + at);
        u[k] = load<N>(up + at);
    }
    EACH_TIME {
        if (vector_at(k) >= n) continue;
        const i64 at = gate_at(vector_at(k), F);
        EACH_ELEMENT {
            const float s = sigmoid_of<T_X>(g[k][e]), y = g[k][e] * s;
            u[k][e] *= d[k][e] * (s + y * (1.0f - s));
            g[k][e] = d[k][e] * y;
        }
        store<N>(dgate + at, u[k]);
        store<N>(dup + at, g[k]);
    }
}
