#include "lab/number_format.h"

#include <math.h>
#include <string.h>

/* clang-format off */
const struct number_format number_formats[NUMBER_KINDS] = {
    [NUMBER_FP32] = {"fp32", "float32", 8, 23, -126, 127, 0x1.fffffep127, 0x7fc00000, true, false, "cvt.rn.f32.f64"},
    [NUMBER_TF32] = {"tf32", "tf32", 8, 10, -126, 127, 0x1.ffcp127, 0x3fe00, true, false, "cvt.rn.tf32.f32"},
    [NUMBER_FP16] = {"fp16", "float16", 5, 10, -14, 15, 65504, 0x7e00, true, false, "cvt.rn.f16.f32"},
    [NUMBER_BF16] = {"bf16", "bfloat16", 8, 7, -126, 127, 0x1.fep127, 0x7fc0, true, false, "cvt.rn.bf16.f32"},
    [NUMBER_E4M3] = {"e4m3", "e4m3", 4, 3, -6, 8, 448, 0x7f, false, true, "cvt.rn.satfinite.e4m3x2.f32"},
    [NUMBER_E5M2] = {"e5m2", "e5m2", 5, 2, -14, 15, 57344, 0x7f, true, true, "cvt.rn.satfinite.e5m2x2.f32"},
};
/* clang-format on */

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023 };

static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + DOUBLE_BIAS) << DOUBLE_FRACTION;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* floor(log2 |x|) of a normal double; for a smaller double, an exponent below those of all
 * formats. */
static int exponent_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (int)(bits >> DOUBLE_FRACTION & 0x7ff) - DOUBLE_BIAS;
}

/* The distance between neighboring numbers of the format at x, which is finite. */
static double quantum_of(const struct number_format *n, double x)
{
    int exponent = exponent_of(x);
    return power_of_two((exponent < n->least ? n->least : exponent) - n->fraction);
}

double number_round(enum number_kind f, double x)
{
    const struct number_format *n = &number_formats[f];
    double size = fabs(x);
    if (size <= 2 * n->largest) {
        /* Doubles near `large` are one quantum apart, so adding `large` rounds to whole quanta. */
        double large = 0x1.8p52 * quantum_of(n, x);
        size = size + large - large;
    }
    if (size > n->largest) size = n->saturates ? n->largest : INFINITY;
    return copysign(size, x);
}

int number_width(enum number_kind f)
{
    return 1 + number_formats[f].exponent + number_formats[f].fraction;
}

uint32_t number_bits(enum number_kind f, double x)
{
    const struct number_format *n = &number_formats[f];
    uint32_t sign = signbit(x) ? 1u << (number_width(f) - 1) : 0;
    if (isnan(x) || (isinf(x) && !n->infinities)) return n->nan;
    if (isinf(x)) return sign | ((1u << n->exponent) - 1) << n->fraction;
    int exponent = exponent_of(x);
    uint32_t significand = (uint32_t)(fabs(x) / quantum_of(n, x));
    if (exponent < n->least) return sign | significand;
    return sign | (uint32_t)(exponent - n->least + 1) << n->fraction |
           (significand & ((1u << n->fraction) - 1));
}

double number_value(enum number_kind f, uint32_t bits)
{
    const struct number_format *n = &number_formats[f];
    uint32_t fraction = bits & ((1u << n->fraction) - 1), ones = (1u << n->exponent) - 1;
    uint32_t field = bits >> n->fraction & ones;
    double sign = bits >> (number_width(f) - 1) & 1 ? -1 : 1;
    if (n->infinities && field == ones) return fraction ? (double)NAN : sign * INFINITY;
    int exponent = field ? n->least + (int)field - 1 : n->least;
    double significand = (field ? power_of_two(n->fraction) : 0) + fraction;
    double x = sign * significand * power_of_two(exponent - n->fraction);
    return fabs(x) > n->largest ? (double)NAN : x;
}

double number_spacing(enum number_kind f, double x)
{
    return isfinite(x) ? quantum_of(&number_formats[f], x) : (double)NAN;
}

double number_smallest_normal(enum number_kind f)
{
    return power_of_two(number_formats[f].least);
}

double number_smallest(enum number_kind f)
{
    return power_of_two(number_formats[f].least - number_formats[f].fraction);
}

const char *number_text(enum number_kind f, double x, char buffer[NUMBER_TEXT])
{
    uint32_t bits = number_bits(f, x);
    int n = 0, first = number_width(f) - 1;
    for (int i = first; i >= 0; i--) {
        buffer[n++] = bits >> i & 1 ? '1' : '0';
        if (i == first || i == number_formats[f].fraction) buffer[n++] = ' ';
    }
    buffer[n] = '\0';
    return buffer;
}

enum number_kind number_find(const char *word)
{
    int f = 0;
    while (f < NUMBER_KINDS && strcmp(word, number_formats[f].name) != 0 &&
           strcmp(word, number_formats[f].dtype) != 0)
        f++;
    return (enum number_kind)f;
}
