/* softmax.h - exponentials and sums over the lines of tiles, as both ways of attention use them. */
#ifndef BACKEND_CPU_BF16_SOFTMAX_H
#define BACKEND_CPU_BF16_SOFTMAX_H

#include "backend/cpu/bf16/tile.h"

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

/* 2^x within 3e-6 of itself, a five-hundredth of what rounding it to bf16 does; 0 where x is far below. The
 * fraction comes from one instruction and the whole part goes into another, so that seven of them do. */
INLINE vf power_of_2(vf x)
{
    vf r = _mm512_reduce_ps(x, 0x09); /* x - floor(x) */
    vf p = (((1.342668429e-2f * r + 5.224247419e-2f) * r + 2.412802048e-1f) * r + 6.930448449e-1f) *
               r +
           1.0f;
    return _mm512_scalef_ps(p, x); /* p * 2^floor(x) */
}

/* The lane-wise maximum or sum of a and b. */
INLINE vf either(vf a, vf b, const bool largest)
{
    return largest ? vf_max(a, b) : a + b;
}

/* Lane i is the maximum or the sum of the lanes of x[i]. Pairs of lines are halved together: 15 steps. */
INLINE vf over_lanes(vf x[16], const bool largest)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        x[i] = either(_mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]),
                      _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]), largest);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512d a = (__m512d)x[2 * i], b = (__m512d)x[2 * i + 1];
        x[i] = either((vf)_mm512_unpacklo_pd(a, b), (vf)_mm512_unpackhi_pd(a, b), largest);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        x[i] = either(_mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0x44),
                      _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], 0xee), largest);
    return either(_mm512_shuffle_f32x4(x[0], x[1], 0x88), _mm512_shuffle_f32x4(x[0], x[1], 0xdd),
                  largest);
}

/* The first n of 32 words; n may be anything. */
INLINE __mmask32 first_words(int64_t n)
{
    return n >= 32 ? ~0u : n > 0 ? (1u << n) - 1u : 0;
}

/* 32 numbers as bf16, rounded to the nearest; those that are not kept are zero. */
INLINE __m512i narrow(vf low, vf high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
INLINE __m512i narrow_kept(__mmask32 kept, vf low, vf high)
{
    return (__m512i)_mm512_maskz_cvtne2ps_pbh(kept, high, low);
}

#endif
