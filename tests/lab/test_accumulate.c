/* Emulated formats against the compiler's, and known sums. */
#include "lab/accumulate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every sign and exponent, random fractions; also doubles halfway between fp32 numbers. */
static void test_fp32_matches_the_processor(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)rand() << 1 ^ (uint32_t)rand();
        double x = (double)float_of(bits), next = (double)nextafterf((float)x, INFINITY);
        if (!isfinite(x) || !isfinite(next)) continue;
        double y = i % 4 == 0 ? x : i % 4 == 1 ? (x + next) / 2 : x + (next - x) * 0.3;
        assert_true(number_round(NUMBER_FP32, y) == (double)(float)y);
        assert_int_equal(number_bits(NUMBER_FP32, (double)(float)y), float_bits((float)y));
    }
    assert_true(number_round(NUMBER_FP32, 1e39) == INFINITY);
    assert_int_equal(number_bits(NUMBER_FP32, -INFINITY), 0xff800000);
}

static double half_of(uint32_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = (double)(bits & 1023) / 1024;
    double x = exponent ? ldexp(1 + fraction, exponent - 15) : ldexp(fraction, -14);
    return bits >> 15 ? -x : x;
}

/* All numbers, the midpoints between neighbors, and doubles next to both. */
static void test_every_fp16_number(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 31u << 10; bits++) {
        double x = half_of(bits), next = half_of(bits + 1), middle = (x + next) / 2;
        double even = bits & 1 ? next : x;
        if (bits + 1 == 31u << 10) next = INFINITY;
        assert_true(number_round(NUMBER_FP16, x) == x);
        assert_int_equal(number_bits(NUMBER_FP16, x), bits);
        assert_int_equal(number_bits(NUMBER_FP16, -x), bits | 1u << 15);
        if (isinf(next)) continue;
        assert_true(number_round(NUMBER_FP16, middle) == even);
        assert_true(number_round(NUMBER_FP16, nextafter(middle, -1)) == x);
        assert_true(number_round(NUMBER_FP16, nextafter(middle, 1e9)) == next);
    }
    assert_true(number_round(NUMBER_FP16, 65519.9) == 65504);
    assert_true(number_round(NUMBER_FP16, 65520) == INFINITY);
    assert_int_equal(number_bits(NUMBER_FP16, INFINITY), 0x7c00);
}

/* bf16 is the upper half of fp32, rounded to even. */
static void test_bf16_is_half_of_fp32(void **state)
{
    (void)state;
    srand(2);
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)rand() << 1 ^ (uint32_t)rand();
        if (i % 3 == 0) bits = (bits & 0xffff0000) | 0x8000;
        if ((bits >> 23 & 255) >= 254) continue;
        uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        double x = number_round(NUMBER_BF16, (double)float_of(bits));
        assert_true(x == (double)float_of(rounded << 16));
        assert_int_equal(number_bits(NUMBER_BF16, x), rounded);
    }
}

static void test_known_sums(void **state)
{
    (void)state;
    struct accumulation a[ACCUMULATIONS];
    accumulate_all(a);
    float plain = 0;
    for (int i = 0; i < ACCUMULATE_TIMES; i++) plain += 0.01f;
    assert_true(a[0].sum == (double)plain && a[0].addend == (double)0.01f);
    assert_true(a[1].sum == 9.953125 && a[1].addend == 0.01000213623046875);
    assert_true(a[2].sum == 10.00213623046875 && a[3].sum == a[2].sum);
    assert_true(a[4].sum == 4 && a[4].stuck == 350 && a[4].addend == 0.010009765625);
    for (int i = 5; i < ACCUMULATIONS; i++) assert_true(a[i].kahan && a[i].sum == 10);
    for (int i = 0; i < 4; i++) assert_int_equal(a[i].stuck, 0);
    char text[NUMBER_TEXT];
    assert_int_equal(number_bits(NUMBER_FP16, a[1].sum), 0x48fa);
    assert_string_equal(number_text(NUMBER_FP16, a[1].sum, text), "0 10010 0011111010");
    assert_string_equal(number_text(NUMBER_BF16, 4, text), "0 10000001 0000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32_matches_the_processor),
        cmocka_unit_test(test_every_fp16_number),
        cmocka_unit_test(test_bf16_is_half_of_fp32),
        cmocka_unit_test(test_known_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
