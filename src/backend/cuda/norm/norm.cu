/* norm.cu - layer norms: y = (x - mean) rstd w + bias over rows of COLUMNS, rstd = 1 / sqrt(var +
 * eps). add_layernorm normalizes s = a + dropout(b), which is also an output. T_X, COLUMNS, LANES,
 * EACH: norm.cuh; BIAS: 0 or 1.
 *
 * A row stays in registers: two passes for mean and variance without reading twice. Bound by
 * memory: 2 accesses per element, 4 with the sum; the random bytes of dropout add 10 instructions
 * per element, which fit into that time. */
#include "norm.cuh"

struct parameters {
    const float *w, *bias;
};

DEVICE void normalize(floats<N> (&v)[STEPS], const parameters &p, T_X *y, float *mean, float *rstd,
                      float eps)
{
    float sum = 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        EACH_ELEMENT sum += v[s][e];
    }
    const float m = row_sum(sum) * (1.0f / COLUMNS);
    float squares = 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        EACH_ELEMENT {
            v[s][e] -= m;
            squares += v[s][e] * v[s][e];
        }
    }
    const float r = 1.0f / sqrtf(row_sum(squares) * (1.0f / COLUMNS) + eps);
    EACH_STEP {
        if (!is_column(s)) continue;
        floats<N> w = load<N>(p.w + column_at(s));
        EACH_ELEMENT v[s][e] *= r * w[e];
        if (BIAS) {
            floats<N> bias = load<N>(p.bias + column_at(s));
            EACH_ELEMENT v[s][e] += bias[e];
        }
        store<N>(y + column_at(s), v[s]);
    }
    if (lane_of_row() != 0) return;
    *mean = m;
    *rstd = r;
}

KERNEL_MIN(ROW_THREADS, 1)
layernorm(T_X *y, float *mean, float *rstd, const T_X *x, const float *w,
#if BIAS
          const float *bias,
#endif
          float eps, i64 rows)
{
#if !BIAS
    const float *bias = 0;
#endif
    const i64 row = row_of_lane();
    if (row >= rows) return;
    floats<N> v[STEPS];
    EACH_STEP if (is_column(s)) v[s] = load<N>(x + row * COLUMNS + column_at(s));
    const parameters p = {w, bias};
    normalize(v, p, y + row * COLUMNS, mean + row, rstd + row, eps);
}

/* sums may be a. The rounded sums are normalized. */
KERNEL_MIN(ROW_THREADS, 1)
add_layernorm(T_X *sums, T_X *y, float *mean, float *rstd, const T_X *a, const T_X *b,
              const int *step, const float *w,
#if BIAS
              const float *bias,
#endif
              u32 seed, u32 site, int threshold, float eps, i64 rows)
{
#if !BIAS
    const float *bias = 0;
#endif
    const i64 row = row_of_lane();
    if (row >= rows) return;
    const i64 first = row * COLUMNS;
    floats<N> v[STEPS], branch[STEPS];
    EACH_STEP {
        if (!is_column(s)) continue;
        v[s] = load<N>(a + first + column_at(s));
        branch[s] = load<N>(b + first + column_at(s));
    }
    const u32 now = threshold ? (u32)*step : 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        if (threshold) apply_dropout(branch[s], first + column_at(s), seed, site, now, threshold);
        EACH_ELEMENT v[s][e] = to_float(to<T_X>(v[s][e] + branch[s][e]));
        store<N>(sums + first + column_at(s), v[s]);
    }
    const parameters p = {w, bias};
    normalize(v, p, y + first, mean + row, rstd + row, eps);
}
