/* Number formats: every 8-bit number and halfway point against the conversions of the backend, and
 * additions against correctly rounded ones. */
#include "backend/cpu/ref/float8.h"
#include "lab/add.h"

#include "../support/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static uint64_t random_state;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void begin_random(void)
{
    random_state = 0x9e3779b97f4a7c15;
}

static bool same(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

static const struct {
    enum number_kind narrow;
    enum dtype dtype;
} eight[] = {{NUMBER_E4M3, DT_E4M3}, {NUMBER_E5M2, DT_E5M2}};

static void agree(enum number_kind f, enum dtype dtype, double x)
{
    uint8_t code = float8_store(dtype, x);
    double y = number_round(f, x);
    if (number_bits(f, y) != code || !same(y, float8_load(dtype, code)))
        fail_msg("%s of %a: %a, 0x%02x, but the backend has 0x%02x", number_formats[f].name, x, y,
                 number_bits(f, y), code);
}

/* All numbers, all halfway points, the doubles next to both, and a dense sample. */
static void test_the_backend_agrees_about_8_bits(void **state)
{
    (void)state;
    begin_random();
    for (int k = 0; k < COUNT_OF(eight); k++) {
        enum number_kind f = eight[k].narrow;
        enum dtype dtype = eight[k].dtype;
        for (uint32_t code = 0; code < 256; code++) {
            double x = number_value(f, code);
            assert_true(same(x, float8_load(dtype, (uint8_t)code)));
            if (!isfinite(x)) continue;
            double half = copysign(number_spacing(f, x) / 2, x), at[] = {x, x + half};
            for (int i = 0; i < COUNT_OF(at); i++) {
                agree(f, dtype, at[i]);
                agree(f, dtype, nextafter(at[i], INFINITY));
                agree(f, dtype, nextafter(at[i], -INFINITY));
            }
        }
        for (int i = 0; i < 400000; i++) {
            double x = ldexp((double)(random_bits() >> 11), (int)(random_bits() % 64) - 92);
            agree(f, dtype, i & 1 ? -x : x);
        }
        const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -1e300, 5e-324};
        for (int i = 0; i < COUNT_OF(special); i++) agree(f, dtype, special[i]);
    }
}

/* tf32 is fp32 without its last 13 bits. */
static void test_tf32_is_a_part_of_fp32(void **state)
{
    (void)state;
    begin_random();
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)random_bits(), kept = bits >> 13, rest = bits & 8191;
        if (i % 4 == 0) rest = 4096;
        if ((bits >> 23 & 255) >= 254) continue;
        double x = number_value(NUMBER_FP32, kept << 13 | rest), y = number_round(NUMBER_TF32, x);
        assert_int_equal(number_bits(NUMBER_TF32, y),
                         kept + (rest > 4096 || (rest == 4096 && kept & 1)));
    }
}

static void test_bits_and_values(void **state)
{
    (void)state;
    for (int f = NUMBER_TF32; f < NUMBER_KINDS; f++)
        for (uint32_t bits = 0; bits < 1u << number_width(f); bits++) {
            double x = number_value(f, bits);
            if (isnan(x)) continue;
            assert_int_equal(number_bits(f, x), bits);
            double kept = isinf(x) && number_formats[f].saturates
                              ? copysign(number_formats[f].largest, x)
                              : x;
            assert_true(same(number_round(f, x), kept));
        }
    for (int f = 0; f < NUMBER_KINDS; f++) {
        const struct number_format *n = &number_formats[f];
        assert_true(isnan(number_value(f, n->nan)));
        assert_int_equal(number_bits(f, NAN), n->nan);
        uint32_t largest = number_bits(f, n->largest);
        assert_true(!isfinite(number_value(f, largest + 1)));
        assert_true(isinf(number_value(f, largest + 1)) == n->infinities);
        assert_true(number_value(f, 1) == number_smallest(f));
        assert_true(number_value(f, 1u << n->fraction) == number_smallest_normal(f));
        assert_int_equal(number_find(n->name), f);
        assert_int_equal(number_find(n->dtype), f);
    }
    assert_int_equal(number_find("fp4"), NUMBER_KINDS);
    assert_true(number_spacing(NUMBER_FP16, 1000) == 0.5);
    assert_true(number_spacing(NUMBER_FP32, 1) == 0x1p-23);
    assert_true(number_smallest(NUMBER_FP32) == 0x1p-149);
    assert_true(number_round(NUMBER_E4M3, 1e6) == 448 && number_round(NUMBER_E5M2, 1e6) == 57344);
    assert_true(isinf(number_round(NUMBER_FP16, 1e6)));
}

/* The steps are consistent with each other and with the result. */
static void check_steps(const struct addition *x)
{
    const struct number_format *n = &number_formats[x->format];
    if (x->special) return;
    for (int i = 0; i < 2; i++)
        assert_true(ldexp(x->of[i].significand, x->of[i].exponent - n->fraction) ==
                    fabs(x->term[i]));
    assert_true(x->shift >= 0 && x->normal.exponent >= n->least);
    int places = n->fraction + ADD_EXTRA;
    double sum = ldexp(x->sum.significand, x->sum.exponent - places);
    double normal = ldexp(x->normal.significand, x->normal.exponent - places);
    assert_true(x->moved == -1 || sum == normal);
    assert_true(x->normal.significand < 2u << places);
    if (x->result != 0 && !x->overflow)
        assert_true(fabs(x->result) ==
                    ldexp(x->rounded.significand, x->rounded.exponent - n->fraction));
    if (x->rest == 0 && x->shift <= ADD_EXTRA) assert_true(sum == fabs(x->exact));
}

static void check_sum(enum number_kind f, double a, double b, double expected)
{
    struct addition x;
    add_numbers(f, a, b, &x);
    if (!same(x.result, expected))
        fail_msg("%s: %a + %a is %a, not %a", number_formats[f].name, a, b, x.result, expected);
    check_steps(&x);
}

/* All pairs of 8-bit numbers; the sum is exact in double. An infinity given to a format that
 * saturates becomes its largest number first. */
static void test_every_8_bit_sum(void **state)
{
    (void)state;
    for (int f = NUMBER_E4M3; f <= NUMBER_E5M2; f++)
        for (uint32_t i = 0; i < 256; i++)
            for (uint32_t k = 0; k < 256; k++) {
                double a = number_value(f, i), b = number_value(f, k);
                check_sum(f, a, b, number_round(f, number_round(f, a) + number_round(f, b)));
            }
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Any two bit patterns, and pairs whose exponents are near, as far sums are trivial. */
static void test_fp32_sums_match_the_processor(void **state)
{
    (void)state;
    begin_random();
    for (int i = 0; i < 1000000; i++) {
        uint32_t a = (uint32_t)random_bits(), b = (uint32_t)random_bits();
        if (i & 1) b = (b & 0x807fffff) | ((a >> 23 & 255) + (b >> 23 & 31) + 240) % 256 << 23;
        if (i % 16 == 3) b = a ^ 0x80000000 ^ (b & 7);
        volatile float x = float_of(a), y = float_of(b), sum = x + y;
        check_sum(NUMBER_FP32, (double)x, (double)y, (double)sum);
    }
}

/* bf16 and tf32 by doubles, which hold their sums unless the smaller term is far below the last
 * place; then the double is on the right side of every tie. */
static void test_sums_match_doubles(void **state)
{
    (void)state;
    static const enum number_kind of[] = {NUMBER_TF32, NUMBER_BF16, NUMBER_FP16};
    begin_random();
    for (int i = 0; i < 300000; i++) {
        enum number_kind f = of[i % COUNT_OF(of)];
        uint32_t mask = (1u << number_width(f)) - 1;
        double a = number_value(f, (uint32_t)random_bits() & mask);
        double b = number_value(f, (uint32_t)random_bits() & mask);
        if (i & 1 && isnormal(a) && isnormal(b))
            b = number_round(f, ldexp(b, ilogb(a) - ilogb(b) + (int)(random_bits() % 16)));
        check_sum(f, a, b, number_round(f, a + b));
    }
}

#ifdef __FLT16_MANT_DIG__
static double half_of(uint32_t bits)
{
    uint16_t code = (uint16_t)bits;
    _Float16 x;
    memcpy(&x, &code, sizeof x);
    return (double)x;
}

/* All numbers with a sample of others, by the compiler's fp16. */
static void test_fp16_sums_match_the_compiler(void **state)
{
    (void)state;
    begin_random();
    for (uint32_t a = 0; a < 1u << 16; a++)
        for (int i = 0; i < 16; i++) {
            uint32_t near = (a & 0x7c00) + ((uint32_t)random_bits() % 24 << 10);
            uint32_t b = (uint32_t)random_bits() & (i & 1 ? 0x83ff : 0xffff);
            if (i & 1) b |= (near - (12u << 10)) & 0x7c00;
            double x = half_of(a), y = half_of(b);
            assert_true(same(x, number_value(NUMBER_FP16, a)));
            _Float16 sum = (_Float16)x + (_Float16)y;
            check_sum(NUMBER_FP16, x, y, (double)sum);
        }
}
#else
static void test_fp16_sums_match_the_compiler(void **state)
{
    (void)state;
    SKIP("this compiler has no _Float16");
}
#endif

static void test_steps_of_known_sums(void **state)
{
    (void)state;
    struct addition x;
    add_numbers(NUMBER_FP16, 1000, 0.01, &x);
    assert_true(x.result == 1000 && x.larger == 0 && x.shift == 16 && x.lost == 0x51f);
    assert_true(x.aligned.significand == 1 && !x.up && !x.tie && !x.carried && !x.overflow);
    assert_true(x.exact == 1000.01000213623046875 && x.rest == 0);
    add_numbers(NUMBER_FP16, 1.5, 1.75, &x);
    assert_true(x.result == 3.25 && x.moved == -1 && x.normal.exponent == 1);
    add_numbers(NUMBER_FP16, 1, -0x1.ffcp-1, &x);
    assert_true(x.result == 0x1p-11 && x.moved == 11 && x.shift == 1);
    add_numbers(NUMBER_FP16, 2048, 1, &x);
    assert_true(x.result == 2048 && x.tie && !x.up);
    add_numbers(NUMBER_FP16, 2050, 1, &x);
    assert_true(x.result == 2052 && x.tie && x.up);
    add_numbers(NUMBER_BF16, 255, 0.5, &x);
    assert_true(x.result == 256 && x.up && x.carried);
    add_numbers(NUMBER_FP16, 65504, 16, &x);
    assert_true(isinf(x.result) && x.overflow);
    add_numbers(NUMBER_E4M3, 448, 448, &x);
    assert_true(x.result == 448 && x.overflow);
    add_numbers(NUMBER_FP32, 1e38, 1e-38, &x);
    assert_true(x.result == x.term[0] && x.exact == x.term[0] && x.rest == x.term[1]);
    add_numbers(NUMBER_FP16, INFINITY, -INFINITY, &x);
    assert_true(x.special && isnan(x.result));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_backend_agrees_about_8_bits),
        cmocka_unit_test(test_tf32_is_a_part_of_fp32),
        cmocka_unit_test(test_bits_and_values),
        cmocka_unit_test(test_every_8_bit_sum),
        cmocka_unit_test(test_fp32_sums_match_the_processor),
        cmocka_unit_test(test_sums_match_doubles),
        cmocka_unit_test(test_fp16_sums_match_the_compiler),
        cmocka_unit_test(test_steps_of_known_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
