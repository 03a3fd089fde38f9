/* A matrix (rows, columns) as codes of 8 bits, as it lies and transposed, and its largest magnitude: x itself, gelu(x), or
 * x gelu'(y), as OF is X, GELU or GELU_GRAD (TANH: GELU's approximation).
 *
 * T_X: float or bf16. E4M3: 1, or 0 for e5m2. PASSES: 64 rows of a tile each. rows and columns are multiples of 16. Reads x once (and
 * y) and writes two bytes an element: 4 bytes in bf16, 6 with y, by which it is bound.
 *
 * A block has a tile of 64 PASSES rows and 128 columns. A thread takes four rows and eight columns at a time, writes their
 * codes, and puts the four codes of each column into one word of shared memory; column c begins 2 (c / 8) words
 * further on, round the column, so that the words of a warp lie in 32 banks. Then columns are written in runs of 64 PASSES
 * bytes. The scale is known before (see op_float8.c), so blocks wait for nothing; a maximum is the same in any order, and that of
 * floats that are not negative is that of their bits. */
#include "gelu.cuh"

#define THREADS 256
#define COLUMNS 128
#define ROWS (64 * PASSES)
#define WORDS (ROWS / 4) /* of a column */
#define STEPS 16         /* AMAX_STEPS */

#define X 0
#define GELU 1
#define GELU_GRAD 2

/* Bits of mantissa, least exponent of a normal number, the largest code, the exponent of the uppermost whole binade. */
#if E4M3
enum { MANTISSA = 3, LEAST = -6, LARGEST = 0x7e, TOP = 7 };
#else
enum { MANTISSA = 2, LEAST = -14, LARGEST = 0x7b, TOP = 14 };
#endif

/* Codes of two numbers, `low` in the lower byte: the nearest, the even one of two, at most the largest; NaN stays. */
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
    if (size < (u32)(127 + LEAST) << 23) { /* added to this, it is rounded where subnormal codes are */
        float whole = __uint_as_float((u32)(127 + LEAST + SHIFT) << 23);
        code = __float_as_uint(__uint_as_float(size) + whole) - __float_as_uint(whole);
    } else {
        size += (1u << (SHIFT - 1)) - 1 + (size >> SHIFT & 1);
        code = (size >> SHIFT) - ((u32)(127 + LEAST - 1) << MANTISSA);
    }
    return sign | (code < (u32)LARGEST ? code : (u32)LARGEST);
}
DEVICE u32 two_codes(float low, float high)
{
    return code_of(low) | code_of(high) << 8;
}
#endif

DEVICE u32 four_codes(const floats<8> &v, int at, float times)
{
    return two_codes(v[at] * times, v[at + 1] * times) |
           two_codes(v[at + 2] * times, v[at + 3] * times) << 16;
}

/* The exponent of the scale; all of a warp call. Slots of this step and of the next are not looked at. */
DEVICE int scale_exponent(const float *amax, int now, int first)
{
    const int FAR = 100;
    int i = threadIdx.x % STEPS;
    bool past = i != now && i != (now + 1) % STEPS;
    float a = past ? amax[i] : 0.0f;
    float most = warp_max(a < INFINITY_F ? a : 0.0f);
    int e = most > 0.0f ? (int)(__float_as_uint(most) >> 23) - 127 - TOP : -first;
    return max(-FAR, min(FAR, e));
}

/* Eight numbers of a row, from element `at` on. */
DEVICE floats<8> numbers_at(const T_X *x, const T_X *y, i64 at)
{
    floats<8> v = load_once<8>(x + at);
    if (OF == GELU)
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = gelu_point<T_X, TANH>(v[e]).y;
    if (OF == GELU_GRAD) {
        const floats<8> of = load_once<8>(y + at);
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] *= gelu_point<T_X, TANH>(of[e]).slope;
    }
    return v;
}

/* Byte j of each of four words, for all j. */
DEVICE void transpose(const u32 (&row)[4], u32 (&column)[4])
{
    u32 a = __byte_perm(row[0], row[1], 0x5140), b = __byte_perm(row[2], row[3], 0x5140);
    u32 c = __byte_perm(row[0], row[1], 0x7362), d = __byte_perm(row[2], row[3], 0x7362);
    column[0] = __byte_perm(a, b, 0x5410);
    column[1] = __byte_perm(a, b, 0x7632);
    column[2] = __byte_perm(c, d, 0x5410);
    column[3] = __byte_perm(c, d, 0x7632);
}

/* Where word w of column c lies. */
DEVICE int word_at(int c, int w)
{
    return c * WORDS + (w + c / 8 * 2) % WORDS;
}

KERNEL(THREADS)
quantise(float *amax, u8 *codes, u8 *transposed, float *scale, const T_X *x, const int *step,
         const T_X *y, int rows, int columns, int first)
{
    __shared__ __align__(16) u32 tile[COLUMNS * WORDS];
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const int left = blockIdx.x * COLUMNS, top = blockIdx.y * ROWS, column = left + 8 * tx;
    const int now = (u32)*step % STEPS;
    floats<8> v[PASSES][4];
    float most = 0.0f;
#pragma unroll
    for (int p = 0; p < PASSES; p++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const int row = top + 64 * p + 4 * ty + r;
            if (row < rows && column < columns)
                v[p][r] = numbers_at(x, y, (i64)row * columns + column);
            else
#pragma unroll
                for (int e = 0; e < 8; e++) v[p][r][e] = 0.0f;
        }
    const int exponent = scale_exponent(amax, now, first);
    const float times = __uint_as_float((u32)(127 - exponent) << 23);
#pragma unroll
    for (int p = 0; p < PASSES; p++) {
        const int at = top + 64 * p + 4 * ty;
        u32 row[2][4], of_column[4];
#pragma unroll
        for (int r = 0; r < 4; r++) {
            row[0][r] = four_codes(v[p][r], 0, times);
            row[1][r] = four_codes(v[p][r], 4, times);
#pragma unroll
            for (int e = 0; e < 8; e++) most = fmaxf(most, fabsf(v[p][r][e]));
            if (at < rows && column < columns)
                *(uint2 *)(codes + (i64)(at + r) * columns + column) =
                    make_uint2(row[0][r], row[1][r]);
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            transpose(row[half], of_column);
#pragma unroll
            for (int j = 0; j < 4; j++)
                tile[word_at(8 * tx + 4 * half + j, 16 * p + ty)] = of_column[j];
        }
    }
    most = block_max<THREADS>(most); /* and all of the tile is there */
#pragma unroll
    for (int i = 0; i < COLUMNS * WORDS / 2 / THREADS; i++) {
        const int n = i * THREADS + threadIdx.x, c = n / (WORDS / 2), w = n % (WORDS / 2) * 2;
        if (left + c < columns && top + 4 * w < rows)
            *(uint2 *)(transposed + (i64)(left + c) * rows + top + 4 * w) =
                *(const uint2 *)(tile + word_at(c, w));
    }
    if (threadIdx.x) return;
    atomicMax((int *)amax + now, __float_as_int(most));
    if (blockIdx.x || blockIdx.y) return;
    amax[(now + 1) % STEPS] = 0.0f;
    *scale = __uint_as_float((u32)(127 + exponent) << 23);
}
