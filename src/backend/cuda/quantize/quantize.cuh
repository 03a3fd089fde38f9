/* quantize.cuh - 8-bit codes and their scale, for kernels that quantize matmul operands
 * (op_float8.c). E4M3: 1, or 0 for e5m2. */
#pragma once
#include "device.cuh"

#define AMAX_STEPS 16

/* Mantissa bits, smallest normal exponent, largest code, exponent of the highest binade all of
 * whose numbers have finite codes. */
#if E4M3
enum { MANTISSA = 3, LEAST_EXPONENT = -6, LARGEST = 0x7e, TOP_EXPONENT = 7 };
#else
enum { MANTISSA = 2, LEAST_EXPONENT = -14, LARGEST = 0x7b, TOP_EXPONENT = 14 };
#endif

/* Codes of two numbers, `low` in the lower byte: round to nearest even, saturate, keep NaN. */
#if __CUDA_ARCH__ >= 890
DEVICE u32 codes_e4m3(float low, float high)
{
    u16 r;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
    return r;
}
DEVICE u32 codes_e5m2(float low, float high)
{
    u16 r;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(high), "f"(low));
    return r;
}
DEVICE u32 two_codes(float low, float high)
{
    return E4M3 ? codes_e4m3(low, high) : codes_e5m2(low, high);
}
#else
DEVICE u32 code_of(float a)
{
    const int SHIFT = 23 - MANTISSA;
    u32 bits = __float_as_uint(a), sign = bits >> 24 & 0x80u, size = bits & 0x7fffffffu, code;
    if (size > 0x7f800000u) return 0x7fu;
    /* adding `whole` rounds at the last bit of subnormal codes */
    if (size < (u32)(127 + LEAST_EXPONENT) << 23) {
        float whole = __uint_as_float((u32)(127 + LEAST_EXPONENT + SHIFT) << 23);
        code = __float_as_uint(__uint_as_float(size) + whole) - __float_as_uint(whole);
    } else {
        size += (1u << (SHIFT - 1)) - 1 + (size >> SHIFT & 1);
        code = (size >> SHIFT) - ((u32)(127 + LEAST_EXPONENT - 1) << MANTISSA);
    }
    return sign | (code < (u32)LARGEST ? code : (u32)LARGEST);
}
DEVICE u32 two_codes(float low, float high)
{
    return code_of(low) | code_of(high) << 8;
}
#endif

/* The exponent of the scale. Lane `slot` of each half of a warp passes amax[slot]; all lanes must
 * call. The slots of this step (`now`) and of the next step are ignored. If all other slots are
 * empty, the exponent is -first. */
DEVICE int scale_exponent(float amax, int slot, int now, int first)
{
    const int FAR = 100;
    const bool past = slot != now && slot != (now + 1) % AMAX_STEPS;
    const float known = past && amax > 0 && amax < INFINITY_F ? amax : 0.0f;
    const u32 most = __reduce_max_sync(~0u, __float_as_uint(known));
    const int e = most ? (int)(most >> 23) - 127 - TOP_EXPONENT : -first;
    return max(-FAR, min(FAR, e));
}

DEVICE void transpose(const u32 (&row)[4], u32 (&column)[4])
{
    u32 a = __byte_perm(row[0], row[1], 0x5140), b = __byte_perm(row[2], row[3], 0x5140);
    u32 c = __byte_perm(row[0], row[1], 0x7362), d = __byte_perm(row[2], row[3], 0x7362);
    column[0] = __byte_perm(a, b, 0x5410);
    column[1] = __byte_perm(a, b, 0x7632);
    column[2] = __byte_perm(c, d, 0x5410);
    column[3] = __byte_perm(c, d, 0x7632);
}
