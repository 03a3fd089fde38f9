#include "lab/accumulate.h"

static const double addend = 0.01;

/* clang-format off */
static const struct accumulation rows[ACCUMULATIONS] = {
    {.name = "fp32", .of_sum = NUMBER_FP32, .of_addend = NUMBER_FP32,
     .why = "0.01 is not an fp32 number, but only 2e-10 off; the rest of the error is rounding in a thousand sums."},
    {.name = "fp16", .of_sum = NUMBER_FP16, .of_addend = NUMBER_FP16,
     .why = "fp16 numbers are 1/256 apart from 4 on and 1/128 from 8 on: each step really adds 3/256 there, then 1/128."},
    {.name = "fp32 += fp16", .of_sum = NUMBER_FP32, .of_addend = NUMBER_FP16,
     .why = "the sum loses nothing: it is a thousand times the fp16 number nearest to 0.01, which is 2e-6 too large."},
    {.name = "fp32 += fp32(fp16)", .of_sum = NUMBER_FP32, .of_addend = NUMBER_FP16,
     .why = "the bits of the row above, fp32 += fp16: a sum of fp32 and fp16 casts fp16 to fp32 anyway, and a cast does not restore 0.01."},
    {.name = "bf16", .of_sum = NUMBER_BF16, .of_addend = NUMBER_BF16,
     .why = "bf16 numbers are 1/32 apart from 4 on: an addend below half of that is rounded away, so the sum stays at 4."},
    {.name = "fp32, Kahan", .of_sum = NUMBER_FP32, .of_addend = NUMBER_FP32, .kahan = true,
     .why = "the rounding error of each sum is added in the next one: the result is the fp32 number nearest to a thousand addends."},
    {.name = "fp16, Kahan", .of_sum = NUMBER_FP16, .of_addend = NUMBER_FP16, .kahan = true,
     .why = "Kahan in fp16: the result is the number nearest to 10.0021; fp16 numbers are 1/128 apart there."},
    {.name = "bf16, Kahan", .of_sum = NUMBER_BF16, .of_addend = NUMBER_BF16, .kahan = true,
     .why = "Kahan in bf16, which without Kahan stops at 4: the errors add up in Kahan's correction until they are large enough to change the sum."},
};
/* clang-format on */

static void accumulate(struct accumulation *a)
{
    enum number_kind f = a->of_sum;
    double carried = 0;
    int changed = 0;
    a->addend = number_round(a->of_addend, addend);
    for (int i = 1; i <= ACCUMULATE_TIMES; i++) {
        double x = a->kahan ? number_round(f, a->addend - carried) : a->addend;
        double sum = number_round(f, a->sum + x);
        if (a->kahan) carried = number_round(f, number_round(f, sum - a->sum) - x);
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
