/* optimizer.cu - the optimizer on ranges of floats: sum of squares, AdamW, SGD. COPY: the new
 * weights are also written in bf16. T_G: the type of gradients, float or bf16.
 *
 * Bound by memory: 4 bytes per element (sum of squares), 28 (AdamW: w, m, v read and written, g
 * read), 20 (SGD: w, v read and written, g read), and 2 more for the copy; 2 less if gradients are
 * bf16. */
#include "rows.cuh"

#define THREADS 256
enum { N = 4, TIMES = 2 }; /* 16 bytes per access; accesses per thread and array */

/* --- the sum of squares: one part per block, then one block sums the parts: deterministic --- */

#define SQUARES_THREADS 512
enum { AHEAD = 4 }; /* accesses in flight per thread */

KERNEL(SQUARES_THREADS) square_parts(float *part, const T_G *x, i64 n)
{
    const i64 stride = (i64)gridDim.x * SQUARES_THREADS * 4;
    i64 i = ((i64)blockIdx.x * SQUARES_THREADS + threadIdx.x) * 4;
    float sum[AHEAD] = {0};
    for (; i + (AHEAD - 1) * stride + 4 <= n; i += AHEAD * stride) {
        floats<4> v[AHEAD];
        UNROLL for (int k = 0; k < AHEAD; k++) v[k] = load_streaming<4>(x + i + k * stride);
        UNROLL for (int k = 0; k < AHEAD; k++)
            sum[k] +=
                (v[k][0] * v[k][0] + v[k][1] * v[k][1]) + (v[k][2] * v[k][2] + v[k][3] * v[k][3]);
    }
    for (; i < n; i += stride)
        for (int e = 0; e < 4 && i + e < n; e++) {
            const float v = to_float(x[i + e]);
            sum[0] += v * v;
        }
    float all = block_sum<SQUARES_THREADS>((sum[0] + sum[1]) + (sum[2] + sum[3]));
    if (threadIdx.x == 0) part[blockIdx.x] = all;
}

KERNEL(SQUARES_THREADS) add_parts(float *total, const float *part, int parts)
{
    float sum = 0;
    for (int i = threadIdx.x; i < parts; i += SQUARES_THREADS) sum += part[i];
    sum = block_sum<SQUARES_THREADS>(sum);
    if (threadIdx.x == 0) *total = sum;
}

/* --- AdamW --- */

struct update {
    float clip, shrink, beta1, rest1, beta2, rest2, step, inverse_root, eps;
};

DEVICE float adamw_of(const update &u, float w, float &m, float &v, float g, bool decays)
{
    g *= u.clip;
    m = u.beta1 * m + u.rest1 * g;
    v = u.beta2 * v + u.rest2 * (g * g);
    if (decays) w *= u.shrink;
    return w - u.step * (m / (sqrtf(v) * u.inverse_root + u.eps));
}

/* Weight decay is for the first `decayed` of n elements. rest: 1 - beta, rounded once. */
KERNEL(THREADS)
adamw(float *w, float *m, float *v,
#if COPY
      bf16 *copy,
#endif
      const T_G *g, const float *lr, const float *bias1, const float *bias2, const float *clip,
      float beta1, float rest1, float beta2, float rest2, float eps, float decay, i64 decayed,
      i64 n)
{
    const update u = {*clip, 1.0f - *lr * decay, beta1, rest1, beta2, rest2, *lr / *bias1,
                      1.0f / sqrtf(*bias2), eps};
    const i64 first = ((i64)blockIdx.x * TIMES * THREADS + threadIdx.x) * N;
    floats<N> w1[TIMES], m1[TIMES], v1[TIMES], g1[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        const i64 i = first + k * THREADS * N;
        if (i + N > n) continue;
        w1[k] = load<N>(w + i);
        m1[k] = load<N>(m + i);
        v1[k] = load<N>(v + i);
        g1[k] = load_streaming<N>(g + i);
    }
    UNROLL for (int k = 0; k < TIMES; k++) {
        const i64 i = first + k * THREADS * N;
        if (i + N > n) continue;
        UNROLL for (int e = 0; e < N; e++)
            w1[k][e] = adamw_of(u, w1[k][e], m1[k][e], v1[k][e], g1[k][e], i + e < decayed);
        store<N>(w + i, w1[k]);
        store<N>(m + i, m1[k]);
        store<N>(v + i, v1[k]);
#if COPY
        store<N>(copy + i, w1[k]);
#endif
    }
    const i64 i = n / N * N + threadIdx.x; /* the tail: fewer than N */
    if (blockIdx.x != gridDim.x - 1 || i >= n) return;
    float m2 = m[i], v2 = v[i], w2 = adamw_of(u, w[i], m2, v2, to_float(g[i]), i < decayed);
    w[i] = w2;
    m[i] = m2;
    v[i] = v2;
#if COPY
    copy[i] = to<bf16>(w2);
#endif
}

/* --- SGD with momentum --- */

DEVICE float sgdm_of(float w, float &v, float g, float clip, float lr, float momentum, float decay)
{
    g = g * clip + decay * w;
    v = momentum * v + g;
    return w - lr * v;
}

/* Weight decay is for the first `decayed` of n elements. */
KERNEL(THREADS)
sgdm(float *w, float *v,
#if COPY
     bf16 *copy,
#endif
     const T_G *g, const float *lr, const float *clip, float momentum, float decay, i64 decayed,
     i64 n)
{
    const float c = *clip, rate = *lr;
    const i64 first = ((i64)blockIdx.x * TIMES * THREADS + threadIdx.x) * N;
    floats<N> w1[TIMES], v1[TIMES], g1[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        const i64 i = first + k * THREADS * N;
        if (i + N > n) continue;
        w1[k] = load<N>(w + i);
        v1[k] = load<N>(v + i);
        g1[k] = load_streaming<N>(g + i);
    }
    UNROLL for (int k = 0; k < TIMES; k++) {
        const i64 i = first + k * THREADS * N;
        if (i + N > n) continue;
        UNROLL for (int e = 0; e < N; e++)
            w1[k][e] = sgdm_of(w1[k][e], v1[k][e], g1[k][e], c, rate, momentum,
                               i + e < decayed ? decay : 0.0f);
        store<N>(w + i, w1[k]);
        store<N>(v + i, v1[k]);
#if COPY
        store<N>(copy + i, w1[k]);
#endif
    }
    const i64 i = n / N * N + threadIdx.x; /* the tail: fewer than N */
    if (blockIdx.x != gridDim.x - 1 || i >= n) return;
    float v2 = v[i];
    float w2 = sgdm_of(w[i], v2, to_float(g[i]), c, rate, momentum, i < decayed ? decay : 0.0f);
    w[i] = w2;
    v[i] = v2;
#if COPY
    copy[i] = to<bf16>(w2);
#endif
}
