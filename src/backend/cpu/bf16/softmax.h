/* softmax.h - exponentials, conversions and reductions of rows, for both passes of attention. */
#ifndef BACKEND_CPU_BF16_SOFTMAX_H
#define BACKEND_CPU_BF16_SOFTMAX_H

#include "backend/cpu/bf16/tile.h"

/* 2^x with a relative error of 3e-6, 1/500 of the error of rounding to bf16; 0 for very negative x.
 * One instruction extracts the fraction of x, and another instruction scales by 2 to the integer
 * part. */
INLINE vf exp2_approx(vf x)
{
    vf r = _mm512_reduce_ps(x, 0x09); /* x - floor(x) */
    vf p = (((1.342668429e-2f * r + 5.224247419e-2f) * r + 2.412802048e-1f) * r + 6.930448449e-1f) *
               r +
           1.0f;
    return _mm512_scalef_ps(p, x); /* p * 2^floor(x) */
}

/* The lane-wise maximum or sum of a and b. */
INLINE vf max_or_sum(vf a, vf b, const bool largest)
{
    return largest ? vf_max(a, b) : a + b;
}

/* Lane i of the result is the maximum or sum of the lanes of x[i], computed in 15 steps. */
INLINE vf reduce_rows(vf x[16], const bool largest)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        x[i] = max_or_sum(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]),
                          _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]), largest);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512d a = (__m512d)x[2 * i], b = (__m512d)x[2 * i + 1];
        x[i] = max_or_sum((vf)_mm512_unpacklo_pd(a, b), (vf)_mm512_unpackhi_pd(a, b), largest);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        x[i] = max_or_sum(_mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x44),
                          _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xee), largest);
    return max_or_sum(_mm512_shuffle_f32x4(x[0], x[1], 0x88),
                      _mm512_shuffle_f32x4(x[0], x[1], 0xdd), largest);
}

/* The mask of the first n of 32 16-bit lanes; n may be negative or greater than 32. */
INLINE __mmask32 first_lanes(int64_t n)
{
    return n >= 32 ? ~0u : n > 0 ? (1u << n) - 1u : 0;
}

/* 32 numbers rounded to bf16. to_bf16_masked sets the lanes that are not in `kept` to zero. */
INLINE __m512i to_bf16(vf low, vf high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
INLINE __m512i to_bf16_masked(__mmask32 kept, vf low, vf high)
{
    return (__m512i)_mm512_maskz_cvtne2ps_pbh(kept, high, low);
}

#endif
