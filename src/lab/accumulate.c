#include "lab/accumulate.h"

#include <math.h>

static const double addend = 0.01;

/* Significand bits with the leading one, and the exponent of the smallest normal number. */
static const struct {
    int significand, least, most, width;
} formats[NARROW_FORMATS] = {
    [NARROW_FP32] = {24, -126, 127, 32},
    [NARROW_FP16] = {11, -14, 15, 16},
    [NARROW_BF16] = {8, -126, 127, 16},
};

/* clang-format off */
static const struct accumulation rows[ACCUMULATIONS] = {
    {.name = "fp32", .of_sum = NARROW_FP32, .of_addend = NARROW_FP32,
     .why = "0.01 is not an fp32 number, but only 2e-10 off; the rest of the error is rounding in a thousand sums."},
    {.name = "fp16", .of_sum = NARROW_FP16, .of_addend = NARROW_FP16,
     .why = "fp16 numbers are 1/256 apart from 4 on and 1/128 from 8 on: each step really adds 3/256 there, then 1/128."},
    {.name = "fp32 += fp16", .of_sum = NARROW_FP32, .of_addend = NARROW_FP16,
     .why = "the sum loses nothing: it is a thousand times the fp16 number nearest to 0.01, which is 2e-6 too large."},
    {.name = "fp32 += fp32(fp16)", .of_sum = NARROW_FP32, .of_addend = NARROW_FP16,
     .why = "the same bits: a sum of fp32 and fp16 casts fp16 to fp32 anyway, and a cast does not restore 0.01."},
    {.name = "bf16", .of_sum = NARROW_BF16, .of_addend = NARROW_BF16,
     .why = "bf16 numbers are 1/32 apart from 4 on: an addend below half of that is rounded away, so the sum stays at 4."},
    {.name = "fp32, Kahan", .of_sum = NARROW_FP32, .of_addend = NARROW_FP32, .kahan = true,
     .why = "the rounding error of each sum is added in the next one: the result is the fp32 number nearest to a thousand addends."},
    {.name = "fp16, Kahan", .of_sum = NARROW_FP16, .of_addend = NARROW_FP16, .kahan = true,
     .why = "the same in fp16: the result is the number nearest to 10.0021; fp16 numbers are 1/128 apart there."},
    {.name = "bf16, Kahan", .of_sum = NARROW_BF16, .of_addend = NARROW_BF16, .kahan = true,
     .why = "the same in bf16, which alone stops at 4: errors add up in the second number until they are large enough."},
};
/* clang-format on */

double narrow_round(enum narrow f, double x)
{
    int exponent;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &exponent); /* |x| = m 2^exponent, m in [1/2, 1) */
    if (exponent - 1 < formats[f].least) exponent = formats[f].least + 1;
    int shift = formats[f].significand - exponent;
    x = ldexp(nearbyint(ldexp(x, shift)), -shift);
    return fabs(x) >= ldexp(1, formats[f].most + 1) ? copysign(INFINITY, x) : x;
}

uint32_t narrow_bits(enum narrow f, double x)
{
    int fraction = formats[f].significand - 1, exponent = 0;
    uint32_t sign = signbit(x) ? 1u << (formats[f].width - 1) : 0, all_ones;
    all_ones = (uint32_t)(formats[f].most - formats[f].least + 2);
    x = fabs(x);
    if (isnan(x)) return sign | all_ones << fraction | 1u << (fraction - 1);
    if (isinf(x)) return sign | all_ones << fraction;
    if (x > 0) frexp(x, &exponent);
    bool normal = x > 0 && exponent - 1 >= formats[f].least;
    int power = normal ? exponent - 1 : formats[f].least;
    uint32_t significand = (uint32_t)ldexp(x, fraction - power);
    if (!normal) return sign | significand;
    return sign | (uint32_t)(power - formats[f].least + 1) << fraction |
           (significand & ((1u << fraction) - 1));
}

const char *narrow_text(enum narrow f, double x, char buffer[NARROW_TEXT])
{
    uint32_t bits = narrow_bits(f, x);
    int n = 0, fraction = formats[f].significand - 1;
    for (int i = formats[f].width - 1; i >= 0; i--) {
        buffer[n++] = bits >> i & 1 ? '1' : '0';
        if (i == formats[f].width - 1 || i == fraction) buffer[n++] = ' ';
    }
    buffer[n] = '\0';
    return buffer;
}

static void accumulate(struct accumulation *a)
{
    enum narrow f = a->of_sum;
    double carried = 0;
    int changed = 0;
    a->addend = narrow_round(a->of_addend, addend);
    for (int i = 1; i <= ACCUMULATE_TIMES; i++) {
        double x = a->kahan ? narrow_round(f, a->addend - carried) : a->addend;
        double sum = narrow_round(f, a->sum + x);
        if (a->kahan) carried = narrow_round(f, narrow_round(f, sum - a->sum) - x);
        if (sum != a->sum) changed = i;
        a->sum = sum;
    }
    bool went_on = a->kahan || changed == ACCUMULATE_TIMES;
    a->stuck = went_on ? 0 : changed;
}

void accumulate_all(struct accumulation ret[ACCUMULATIONS])
{
    for (int i = 0; i < ACCUMULATIONS; i++) {
        ret[i] = rows[i];
        accumulate(&ret[i]);
    }
}
