/* rmsnorm_grad.cuh - dx of one row of an RMS norm's gradient, for both variants of dw: dx = r (g -
 * x r avg(g x r)), g = dy w; with ADD, plus the gradient of the residual stream. T_X, COLUMNS,
 * LANES (at most 512), EACH: norm.cuh.
 *
 * Row and weights stay in registers between the row's sum and its gradient. */
#pragma once
#include "norm.cuh"

struct tensors {
    const T_X *x, *dy, *more;
};
struct row_in {
    raw x[STEPS], dy[STEPS], more[STEPS];
};
DEVICE void load_row(row_in &in, const tensors &t, i64 first)
{
    EACH_STEP {
        if (!is_column(s)) continue;
        in.x[s] = load_raw(t.x + first + column_at(s));
        in.dy[s] = load_raw(t.dy + first + column_at(s));
        if (ADD) in.more[s] = load_raw(t.more + first + column_at(s));
    }
}
DEVICE void load_weights(floats<N> (&w)[STEPS], const float *from)
{
    EACH_STEP if (is_column(s)) w[s] = load<N>(from + column_at(s));
}

/* With SUMS, grad_row also adds dy x r to the lane's sums dw. The memory of dx may be that of dy or
 * of `more`. */
template <bool SUMS>
DEVICE void grad_row(T_X *dx, const row_in &in, const floats<N> (&w)[STEPS], float r,
                     floats<N> (&dw)[STEPS])
{
    float products = 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        EACH_ELEMENT {
            const float dh = to_float(in.dy[s].x[e]) * (to_float(in.x[s].x[e]) * r);
            products += dh * w[s][e];
            if (SUMS) dw[s][e] += dh;
        }
    }
    products = row_sum(products) * (1.0f / COLUMNS) * r;
    EACH_STEP {
        if (!is_column(s)) continue;
        floats<N> a;
        EACH_ELEMENT a[e] =
            r * (to_float(in.dy[s].x[e]) * w[s][e] - to_float(in.x[s].x[e]) * products);
        if (ADD) EACH_ELEMENT a[e] += to_float(in.more[s].x[e]);
        store<N>(dx + column_at(s), a);
    }
}
