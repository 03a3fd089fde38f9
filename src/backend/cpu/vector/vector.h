/* vector.h - arithmetic on vectors of W floats, for any instruction set.
 *
 * Sources in this folder are compiled once for each instruction set, with a matching -march and
 * with ISA defined to its name; VEC() appends the name to every symbol with external linkage. The
 * sources use the vector types of gcc and clang, whose operators work lane by lane; this header
 * adds the operations that these types lack. If VEC_PLAIN is defined, this header uses plain C, for
 * all other processors.
 *
 * The functions propagate NaN; vf_max and vf_min do so only for a NaN in the second operand. */
#ifndef BACKEND_CPU_VECTOR_VECTOR_H
#define BACKEND_CPU_VECTOR_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define VEC_JOIN(name, isa) name##_##isa
#define VEC_NAME(name, isa) VEC_JOIN(name, isa)
#define VEC(name)           VEC_NAME(name, ISA)
#define VEC_STRING_OF(isa)  #isa
#define VEC_STRING(isa)     VEC_STRING_OF(isa)
#define ISA_NAME            VEC_STRING(ISA) /* "avx512": the variant of a kernel row */

/* VEC_EACH lists f(lane, s) for each lane; VEC_HALVES lists f(s) for s = W/2, W/4, ... 1. */
#define VEC_4(f, s) f(0, s), f(1, s), f(2, s), f(3, s)
#define VEC_8(f, s) VEC_4(f, s), f(4, s), f(5, s), f(6, s), f(7, s)
#define VEC_16(f, s) \
    VEC_8(f, s), f(8, s), f(9, s), f(10, s), f(11, s), f(12, s), f(13, s), f(14, s), f(15, s)
#if defined(__AVX512F__)
enum { W = 16 };
#define VEC_EACH      VEC_16
#define VEC_HALVES(f) f(8) f(4) f(2) f(1)
#elif defined(__AVX2__)
enum { W = 8 };
#define VEC_EACH      VEC_8
#define VEC_HALVES(f) f(4) f(2) f(1)
#else
enum { W = 4 };
#define VEC_EACH      VEC_4
#define VEC_HALVES(f) f(2) f(1)
#endif
#define VEC_LANE(lane, s)    (lane)
#define VEC_LANES            VEC_EACH(VEC_LANE, 0)
/* Lane i of the result is lane f(i, s) of a and b, where b follows a; f must be a constant. */
#define VEC_PICK(a, b, f, s) __builtin_shufflevector(a, b, VEC_EACH(f, s))
/* Lane i of the result is lane i ^ s of a. */
#define VEC_XOR(lane, s)     ((lane) ^ (s))
#define VEC_SWAP(a, s)       VEC_PICK(a, a, VEC_XOR, s)

typedef float vf __attribute__((vector_size(4 * W)));
typedef int32_t vi __attribute__((vector_size(4 * W)));
typedef uint32_t vu __attribute__((vector_size(4 * W)));
typedef uint64_t vu64 __attribute__((vector_size(4 * W)));

#define INLINE static inline __attribute__((always_inline))

static const float LOG2_E = 1.44269504f, LN_2 = 0.693147181f;

INLINE vf vf_select(vi which, vf a, vf b)
{
    return (vf)((which & (vi)a) | (~which & (vi)b));
}

/* --- operations that differ between instruction sets --- */

#if defined(__AVX512F__)
#define VEC_MATH(name, arg) _ZGVeN16v_##name(arg)
vf _ZGVeN16v_logf(vf);
vf _ZGVeN16v_tanhf(vf);
vf _ZGVeN16v_erff(vf);
/* Returns b where a or b is NaN. */
INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}
INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}
INLINE vf vf_sqrt(vf a)
{
    return _mm512_sqrt_ps(a);
}
INLINE __mmask16 vf_first(int64_t n)
{
    return (__mmask16)((1u << n) - 1u);
}
INLINE vf vf_load_part(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps(vf_first(n), p);
}
INLINE void vf_store_part(float *p, vf a, int64_t n)
{
    _mm512_mask_storeu_ps(p, vf_first(n), a);
}
INLINE vf vf_scale2(vf a, vf n)
{
    return _mm512_scalef_ps(a, n);
}
INLINE vu64 vu_mul_even(vu a, vu b)
{
    return (vu64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}
/* W bytes, converted to int32. */
INLINE vi vi_bytes(const uint8_t *p)
{
    return (vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}
/* An estimate and a Newton step take a sixth of the time of a division; the error is half a unit in
 * the last place larger. */
INLINE vf vf_reciprocal(vf a)
{
    vf r = _mm512_rcp14_ps(a);
    return r * (2.0f - a * r);
}
/* The estimate without the Newton step has four correct digits. */
INLINE vf vf_reciprocal_4(vf a)
{
    return _mm512_rcp14_ps(a);
}
#elif defined(__AVX2__)
#define VEC_MATH(name, arg) _ZGVdN8v_##name(arg)
vf _ZGVdN8v_logf(vf);
vf _ZGVdN8v_tanhf(vf);
vf _ZGVdN8v_erff(vf);
INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}
INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}
INLINE vf vf_sqrt(vf a)
{
    return _mm256_sqrt_ps(a);
}
INLINE __m256i vf_first(int64_t n)
{
    return (__m256i)((vi){VEC_LANES} < (int32_t)n);
}
INLINE vf vf_load_part(const float *p, int64_t n)
{
    return _mm256_maskload_ps(p, vf_first(n));
}
INLINE void vf_store_part(float *p, vf a, int64_t n)
{
    _mm256_maskstore_ps(p, vf_first(n), a);
}
INLINE vu64 vu_mul_even(vu a, vu b)
{
    return (vu64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
INLINE vi vi_bytes(const uint8_t *p)
{
    return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
}
#elif defined(__SSE2__) && !defined(VEC_PLAIN)
#define VEC_MATH(name, arg) _ZGVbN4v_##name(arg)
vf _ZGVbN4v_logf(vf);
vf _ZGVbN4v_tanhf(vf);
vf _ZGVbN4v_erff(vf);
INLINE vf vf_max(vf a, vf b)
{
    return _mm_max_ps(a, b);
}
INLINE vf vf_min(vf a, vf b)
{
    return _mm_min_ps(a, b);
}
INLINE vf vf_sqrt(vf a)
{
    return _mm_sqrt_ps(a);
}
INLINE vu64 vu_mul_even(vu a, vu b)
{
    return (vu64)_mm_mul_epu32((__m128i)a, (__m128i)b);
}
INLINE vi vi_bytes(const uint8_t *p)
{
    __m128i zero = {0}, bytes = _mm_loadu_si32(p);
    return (vi)_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
}
#else
#define VEC_MATH(name, arg) ((vf){name((arg)[0]), name((arg)[1]), name((arg)[2]), name((arg)[3])})
INLINE vf vf_max(vf a, vf b)
{
    return vf_select(a > b, a, b);
}
INLINE vf vf_min(vf a, vf b)
{
    return vf_select(a < b, a, b);
}
#if defined(__aarch64__) && !defined(VEC_PLAIN)
INLINE vf vf_sqrt(vf a)
{
    return (vf)vsqrtq_f32((float32x4_t)a);
}
INLINE vu64 vu_mul_even(vu a, vu b)
{
    return (vu64)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
}
INLINE vi vi_bytes(const uint8_t *p)
{
    uint32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return (vi)vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bytes)))));
}
#else
INLINE vf vf_sqrt(vf a)
{
    return VEC_MATH(sqrtf, a);
}
INLINE vu64 vu_mul_even(vu a, vu b)
{
    return ((vu64)a & 0xffffffffu) * ((vu64)b & 0xffffffffu);
}
INLINE vi vi_bytes(const uint8_t *p)
{
    return (vi){p[0], p[1], p[2], p[3]};
}
#endif
#endif

#if !defined(__AVX2__)
/* The first n < W floats; the other lanes are zero. */
INLINE vf vf_load_part(const float *p, int64_t n)
{
    vf a = {0};
    for (int64_t i = 0; i < n; i++) a[i] = p[i];
    return a;
}
INLINE void vf_store_part(float *p, vf a, int64_t n)
{
    for (int64_t i = 0; i < n; i++) p[i] = a[i];
}
#endif

/* --- common to all instruction sets --- */

/* All lanes are a. a - 0 compiles to a broadcast; a + 0 does not, because it turns -0 into 0. */
INLINE vf vf_all(float a)
{
    return a - (vf){0};
}
INLINE vf vf_load(const float *p)
{
    vf a;
    memcpy(&a, p, sizeof a);
    return a;
}
INLINE void vf_store(float *p, vf a)
{
    memcpy(p, &a, sizeof a);
}
/* a where the sign bit of x is set, b elsewhere. */
INLINE vf vf_by_sign(vf x, vf a, vf b)
{
#if defined(__AVX512F__)
    return _mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)x), b, a);
#else
    return vf_select((vi)x >> 31, a, b);
#endif
}
INLINE vf vf_abs(vf a)
{
    return (vf)((vi)a & 0x7fffffff);
}
/* The mask of the first n lanes; all lanes if n >= W. */
INLINE vi vf_lanes(int64_t n)
{
    return (vi){VEC_LANES} < (int32_t)(n < W ? n : W);
}

#if !defined(__AVX512F__)
/* a * 2^n for integers n from -252 to 254. It multiplies by two powers of two, because a single
 * float cannot represent the smallest 2^n. */
INLINE vf vf_scale2(vf a, vf n)
{
    vi k = __builtin_convertvector(n, vi), half = k >> 1;
    return a * (vf)((half + 127) << 23) * (vf)((k - half + 127) << 23);
}
INLINE vf vf_reciprocal(vf a)
{
    return 1.0f / a;
}
INLINE vf vf_reciprocal_4(vf a)
{
    return 1.0f / a;
}
#endif

/* The sum of the lanes, by halving. */
INLINE float vf_sum(vf a)
{
#define ADD(s) a += VEC_SWAP(a, s);
    VEC_HALVES(ADD)
#undef ADD
    return a[0];
}
INLINE float vf_max_lane(vf a)
{
#define MAX(s) a = vf_max(a, VEC_SWAP(a, s));
    VEC_HALVES(MAX)
#undef MAX
    return a[0];
}

/* e^x = 2^n (1 + q): n = x / ln 2 rounded to an integer, q a polynomial of the remainder. */
struct vf_power {
    vf n, q;
};
INLINE struct vf_power vf_power_of(vf x)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vf n = (x * 1.44269504f + to_integer) - to_integer;
    vf r = x - n * 0.693145752f - n * 1.42860677e-6f;
    vf p =
        ((((1.98756915e-4f * r + 1.39819995e-3f) * r + 8.33345191e-3f) * r + 4.16657959e-2f) * r +
         1.66666655e-1f) *
            r +
        5.00000012e-1f;
    return (struct vf_power){n, p * (r * r) + r};
}
/* e^x, from 0 to infinity, without branches; the error is at most 1.5 units in the last place.
 * libmvec's expf takes 25 times as long on large negative numbers, such as masked scores. */
INLINE vf vf_exp(vf x)
{
    struct vf_power e = vf_power_of(vf_min(vf_all(89.0f), vf_max(vf_all(-104.0f), x)));
    return vf_scale2(e.q + 1.0f, e.n);
}
/* e^x - 1 for x <= 0: near 0 it keeps the digits that subtracting 1 would lose. */
INLINE vf vf_expm1(vf x)
{
    struct vf_power e = vf_power_of(vf_max(vf_all(-104.0f), x));
    vf power = vf_scale2(vf_all(1.0f), e.n);
    return e.q * power + (power - 1.0f);
}
INLINE vf vf_log(vf a)
{
    return VEC_MATH(logf, a);
}
INLINE vf vf_tanh(vf a)
{
    return VEC_MATH(tanhf, a);
}
INLINE vf vf_erf(vf a)
{
    return VEC_MATH(erff, a);
}

#endif
