/* norm.cuh - how the lanes of a row share its columns, for norms and their gradients.
 *
 * T_X: activations; COLUMNS; LANES: threads of a row (rows.cuh); EACH: elements of an access, a
 * divisor of COLUMNS, so all rows and accesses are aligned. */
#pragma once
#include "rows.cuh"

enum { N = EACH, STEPS = ceil_div(COLUMNS, N * LANES) };
#define EACH_STEP _Pragma("unroll") for (int s = 0; s < STEPS; s++)
#define EACH_ELEMENT _Pragma("unroll") for (int e = 0; e < N; e++)

DEVICE int column_at(int s)
{
    return (s * LANES + lane_of_row()) * N;
}
DEVICE bool is_column(int s)
{
    return COLUMNS % (N * LANES) == 0 || column_at(s) < COLUMNS;
}

/* One access in memory format. */
typedef vector_of<N, T_X> raw;
DEVICE raw load_raw(const T_X *p)
{
    raw v;
    UNROLL for (int i = 0; i < raw::TIMES; i++) v.w[i] = ((const typename raw::word *)p)[i];
    return v;
}

/* v = dropout(v) for N elements of a tensor, from `at` on. `at` is a multiple of N, so one Philox
 * call suffices. */
DEVICE void apply_dropout(floats<N> &v, i64 at, u32 seed, u32 site, u32 step, int threshold)
{
    const words d = dropout_pointwise(seed, site, step, (u64)at / 16);
    const int byte = (int)(at % 16);
    const float kept = dropout_scale(threshold);
    EACH_ELEMENT {
        int of = byte_at(word_at(d, byte / 4 + e / 4), N < 4 ? (byte + e) % 4 : e % 4);
        v[e] = of >= threshold ? v[e] * kept : 0.0f;
    }
}
