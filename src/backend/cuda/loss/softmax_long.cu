/* softmax_long.cu - softmax and its gradient for rows of any length, where softmax.cu lacks
 * registers. Slower: rows are read two or three times, and each element has its own Philox call.
 *
 * T_X: type of all tensors. With `square`, rows are rows of attention matrices; with `causal`, row
 * q has columns 0 ... q open; threshold > 0: dropout of the probabilities, written to `dropped`. */
#define LANES 1024
#include "rows.cuh"

struct score {
    i64 bh;
    int q, open;
};
DEVICE score score_of(i64 row, int columns, int square, int causal)
{
    score s = {square ? row / columns : 0, square ? (int)(row % columns) : 0, columns};
    if (causal) s.open = s.q + 1;
    return s;
}

DEVICE float keep_of(const score &s, int k, u32 seed, u32 site, u32 step, int threshold)
{
    if (threshold == 0) return 1;
    const int r = s.q % 16, c = k % 16;
    words w = dropout_attention(seed, site, step, (u32)s.bh, (u32)s.q / 16, (u32)k / 16, r % 8 / 2,
                                c % 8 / 2);
    return byte_at(word_at(w, r / 8 * 2 + r % 2), c / 8 * 2 + c % 2) >= threshold
               ? dropout_scale(threshold)
               : 0.0f;
}

KERNEL(LANES)
softmax_long(T_X *y, T_X *dropped, const T_X *x, const int *step, u32 seed, u32 site, int threshold,
             float scale, int columns, int square, int causal)
{
    const i64 row = blockIdx.x;
    const score s = score_of(row, columns, square, causal);
    x += row * columns;
    y += row * columns;
    float top = -INFINITY_F, sum = 0;
    for (int k = threadIdx.x; k < s.open; k += LANES) top = fmaxf(top, scale * to_float(x[k]));
    top = row_max(top);
    for (int k = threadIdx.x; k < s.open; k += LANES)
        sum += exp_for<T_X>(scale * to_float(x[k]) - top);
    const float inverse = 1.0f / row_sum(sum);
    for (int k = threadIdx.x; k < columns; k += LANES) {
        const float p = k < s.open ? exp_for<T_X>(scale * to_float(x[k]) - top) * inverse : 0.0f;
        y[k] = to<T_X>(p);
        if (threshold)
            dropped[row * columns + k] =
                to<T_X>(p * keep_of(s, k, seed, site, (u32)*step, threshold));
    }
}

KERNEL(LANES)
softmax_grad_long(T_X *dx, const T_X *dy, const T_X *y, const int *step, u32 seed, u32 site,
                  int threshold, float scale, int columns, int square, int causal)
{
    const i64 row = blockIdx.x;
    const score s = score_of(row, columns, square, causal);
    const u32 now = threshold ? (u32)*step : 0;
    dx += row * columns;
    dy += row * columns;
    y += row * columns;
    float dot = 0;
    for (int k = threadIdx.x; k < s.open; k += LANES)
        dot += to_float(dy[k]) * keep_of(s, k, seed, site, now, threshold) * to_float(y[k]);
    dot = row_sum(dot);
    for (int k = threadIdx.x; k < columns; k += LANES) {
        float d = 0;
        if (k < s.open)
            d = scale * to_float(y[k]) *
                (to_float(dy[k]) * keep_of(s, k, seed, site, now, threshold) - dot);
        dx[k] = to<T_X>(d);
    }
}
