/* rmsnorm.cu - RMS norms: y = x r w over rows of COLUMNS, where r = 1 / sqrt(avg(x^2) + eps) is
 * also an output. add_rmsnorm normalizes s = a + b, which is also an output. T_X, COLUMNS, LANES,
 * EACH: norm.cuh.
 *
 * A row stays in registers and is read once. Bound by memory: 2 accesses per element, 4 with the
 * sum. About a thousand rows are all resident at once; they are bound by the latency from the first
 * load to the last store. So the weights are loaded together with the row, and lanes synchronize
 * once. */
#include "norm.cuh"

/* For the longest rows there are no registers for weights loaded early. */
enum { EARLY = LANES <= 512 };

struct weights {
    floats<N> of[STEPS];
};
DEVICE void load_weights(weights &k, const float *w)
{
    EACH_STEP if (is_column(s)) k.of[s] = load<N>(w + column_at(s));
}

DEVICE void normalize(floats<N> (&v)[STEPS], weights &k, const float *w, T_X *y, float *rrms,
                      float eps)
{
    float squares = 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        EACH_ELEMENT squares += v[s][e] * v[s][e];
    }
    const float r = 1.0f / sqrtf(row_sum(squares) * (1.0f / COLUMNS) + eps);
    if (!EARLY) load_weights(k, w);
    EACH_STEP {
        if (!is_column(s)) continue;
        EACH_ELEMENT v[s][e] *= r * k.of[s][e];
        store<N>(y + column_at(s), v[s]);
    }
    if (lane_of_row() == 0) *rrms = r;
}

KERNEL_MIN(ROW_THREADS, 1)
rmsnorm(T_X *y, float *rrms, const T_X *x, const float *w, float eps, i64 rows)
{
    const i64 row = row_of_lane();
    if (row >= rows) return;
    floats<N> v[STEPS];
    weights k;
    EACH_STEP if (is_column(s)) v[s] = load<N>(x + row * COLUMNS + column_at(s));
    if (EARLY) load_weights(k, w);
    normalize(v, k, w, y + row * COLUMNS, rrms + row, eps);
}

/* sums may be a. The rounded sums are normalized. */
KERNEL_MIN(ROW_THREADS, 1)
add_rmsnorm(T_X *sums, T_X *y, float *rrms, const T_X *a, const T_X *b, const float *w, float eps,
            i64 rows)
{
    const i64 row = row_of_lane();
    if (row >= rows) return;
    const i64 first = row * COLUMNS;
    floats<N> v[STEPS], branch[STEPS];
    weights k;
    EACH_STEP {
        if (!is_column(s)) continue;
        v[s] = load<N>(a + first + column_at(s));
        branch[s] = load<N>(b + first + column_at(s));
    }
    if (EARLY) load_weights(k, w);
    EACH_STEP {
        if (!is_column(s)) continue;
        EACH_ELEMENT v[s][e] = to_float(to<T_X>(v[s][e] + branch[s][e]));
        store<N>(sums + first + column_at(s), v[s]);
    }
    normalize(v, k, w, y + first, rrms + row, eps);
}
