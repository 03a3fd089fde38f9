/* norm_bf16.cu - the layer norms of norm.cu for bf16 rows of whole accesses (norm_bf16.cuh): y = (x
 * - mean) rstd w + bias. add_layernorm_bf16 normalizes s = a + dropout(b), which is also an output.
 * COLUMNS, LANES, BIAS, DROPOUT.
 *
 * A row stays in registers. Bound by memory, 2 accesses per element, 4 with the sum, if
 * instructions are few: at 384 columns, idle lanes, bytes selected one by one, and half-used Philox
 * calls would cost a quarter of the time. */
#include "norm_bf16_row.cuh"

enum { NORM_THREADS = 128, ROWS_OF_BLOCK = NORM_THREADS / LANES };

/* Lanes beyond the last row compute the first row and store nothing. */
struct row_position {
    i64 row, first;
    bool there;
};
DEVICE row_position row_position_of(i64 rows)
{
    row_position p;
    p.row = (i64)blockIdx.x * ROWS_OF_BLOCK + (int)threadIdx.x / LANES;
    p.there = p.row < rows;
    p.first = p.there ? p.row * COLUMNS : 0;
    return p;
}

DEVICE void normalize(const row &x, const parameters &p, const row_position &at, bf16 *y,
                      float *mean, float *rstd, float eps)
{
    const statistics of = statistics_of(x, eps);
    if (!at.there) return;
    EACH_STEP store_eight(y + at.first + column_at(s), normalized(x, s, of, p));
    if (lane_of_row() != 0) return;
    mean[at.row] = of.mean;
    rstd[at.row] = of.rstd;
}

KERNEL(NORM_THREADS)
layernorm_bf16(bf16 *y, float *mean, float *rstd, const bf16 *x, const float *w,
#if BIAS
               const float *bias,
#endif
               float eps, i64 rows)
{
#if !BIAS
    const float *bias = 0;
#endif
    const row_position at = row_position_of(rows);
    const parameters p = {w, bias};
    row v;
    EACH_STEP v.step[s] = load_eight(x + at.first + column_at(s));
    normalize(v, p, at, y, mean, rstd, eps);
}

/* sums may be a. The rounded sums are normalized. */
KERNEL(NORM_THREADS)
add_layernorm_bf16(bf16 *sums, bf16 *y, float *mean, float *rstd, const bf16 *a, const bf16 *b,
                   const int *step, const float *w,
#if BIAS
                   const float *bias,
#endif
                   u32 seed, u32 site, u32 less, u32 carry, float keep_scale, float eps, i64 rows)
{
#if !BIAS
    const float *bias = 0;
#endif
    const row_position at = row_position_of(rows);
    const parameters p = {w, bias};
    const dropout_args by = {seed, site, DROPOUT ? (u32)*step : 0, less, carry, keep_scale};
    const row v = sum_of(a, b, at.first, by);
    if (at.there) EACH_STEP store_eight(sums + at.first + column_at(s), v.step[s]);
    normalize(v, p, at, y, mean, rstd, eps);
}
