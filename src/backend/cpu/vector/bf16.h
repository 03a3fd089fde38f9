/* bf16.h - loads and stores of bf16 as vectors of W fp32 numbers: bf16 is the upper half of
 * fp32. A store rounds to nearest even and keeps NaN.
 *
 * Processors with AVX512_BF16 round with one instruction, which flushes numbers below 2^-126 to
 * zero. Other processors round with integer arithmetic. */
#ifndef BACKEND_CPU_VECTOR_BF16_H
#define BACKEND_CPU_VECTOR_BF16_H

#include "backend/cpu/vector/vector.h"

#if defined(__AVX512F__)
INLINE vf vf_load_bf16(const uint16_t *p)
{
    __m256i half = _mm256_loadu_si256((const __m256i *)p);
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}
INLINE vf vf_load_part_bf16(const uint16_t *p, int64_t n)
{
    __m256i half = _mm256_maskz_loadu_epi16(vf_first(n), p);
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}
#if defined(__AVX512BF16__)
INLINE __m256i vf_round_bf16(vf a)
{
    return (__m256i)_mm512_cvtneps_pbh(a);
}
#else
INLINE __m256i vf_round_bf16(vf a)
{
    __m512i bits = (__m512i)a,
            odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), (__m512i)((vi){0} + 1));
    __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, (__m512i)((vi){0} + 0x7fff)));
    /* Rounding up would turn some NaNs into zeros. */
    __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    up = _mm512_mask_or_epi32(up, nan, bits, (__m512i)((vi){0} + 0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}
#endif
INLINE void vf_store_bf16(uint16_t *p, vf a)
{
    _mm256_storeu_si256((__m256i *)p, vf_round_bf16(a));
}
INLINE void vf_store_part_bf16(uint16_t *p, vf a, int64_t n)
{
    _mm256_mask_storeu_epi16(p, vf_first(n), vf_round_bf16(a));
}
#else
/* The rounded upper half of each number, in the lower half of its lane. */
INLINE vu vf_round_bf16(vf a)
{
    vu bits = (vu)a, up = bits + 0x7fffu + (bits >> 16 & 1u);
    /* Rounding up would turn some NaNs into zeros. */
    return (vu)vf_select(a == a, (vf)up, (vf)(bits | 0x400000u)) >> 16;
}
#if defined(__AVX2__)
INLINE vf vf_load_bf16(const uint16_t *p)
{
    __m128i half = _mm_loadu_si128((const __m128i *)p);
    return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
}
INLINE void vf_store_bf16(uint16_t *p, vf a)
{
    __m256i bits = (__m256i)vf_round_bf16(a);
    __m128i half =
        _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
    _mm_storeu_si128((__m128i *)p, half);
}
#elif defined(__SSE2__) && !defined(VEC_PLAIN)
INLINE vf vf_load_bf16(const uint16_t *p)
{
    return (vf)_mm_unpacklo_epi16((__m128i){0}, _mm_loadl_epi64((const __m128i *)p));
}
INLINE void vf_store_bf16(uint16_t *p, vf a)
{
    /* The pack instruction saturates signed numbers, so an offset is subtracted and added again. */
    __m128i bits = (__m128i)((vi)vf_round_bf16(a) - 0x8000), half = _mm_packs_epi32(bits, bits);
    _mm_storel_epi64((__m128i *)p, _mm_add_epi16(half, _mm_set1_epi16((short)0x8000)));
}
#elif defined(__aarch64__) && !defined(VEC_PLAIN)
INLINE vf vf_load_bf16(const uint16_t *p)
{
    return (vf)vshlq_n_u32(vmovl_u16(vld1_u16(p)), 16);
}
INLINE void vf_store_bf16(uint16_t *p, vf a)
{
    vst1_u16(p, vmovn_u32((uint32x4_t)vf_round_bf16(a)));
}
#else
INLINE vf vf_load_bf16(const uint16_t *p)
{
    vu bits = {p[0], p[1], p[2], p[3]};
    return (vf)(bits << 16);
}
INLINE void vf_store_bf16(uint16_t *p, vf a)
{
    vu bits = vf_round_bf16(a);
    for (int i = 0; i < W; i++) p[i] = (uint16_t)bits[i];
}
#endif
INLINE vf vf_load_part_bf16(const uint16_t *p, int64_t n)
{
    uint16_t half[W] = {0};
    for (int64_t i = 0; i < n; i++) half[i] = p[i];
    return vf_load_bf16(half);
}
INLINE void vf_store_part_bf16(uint16_t *p, vf a, int64_t n)
{
    uint16_t half[W];
    vf_store_bf16(half, a);
    for (int64_t i = 0; i < n; i++) p[i] = half[i];
}
#endif

INLINE vf load_bf16(const uint16_t *p, int64_t left)
{
    return left >= W ? vf_load_bf16(p) : vf_load_part_bf16(p, left);
}
INLINE void store_bf16(uint16_t *p, vf a, int64_t left)
{
    left >= W ? vf_store_bf16(p, a) : vf_store_part_bf16(p, a, left);
}
INLINE float bf16_value(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
