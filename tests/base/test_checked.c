/* Sums, products and conversions at the ends of int64_t. */
#include "base/checked.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_saturates(void **state)
{
    (void)state;
    assert_true(size_add(1, 2) == 3);
    assert_true(size_add(INT64_MAX - 1, 1) == INT64_MAX);
    assert_true(size_add(INT64_MAX, 1) == SIZE_TOO_LARGE);
    assert_true(size_add(SIZE_TOO_LARGE, SIZE_TOO_LARGE) == SIZE_TOO_LARGE);
    assert_true(size_mul(3, 5) == 15);
    assert_true(size_mul((int64_t)1 << 32, (int64_t)1 << 31) == SIZE_TOO_LARGE);
    assert_true(size_mul(SIZE_TOO_LARGE, 2) == SIZE_TOO_LARGE);
    assert_true(size_mul(SIZE_TOO_LARGE, 0) == 0);
    assert_true(size_round_up(64, 64) == 64 && size_round_up(65, 64) == 128);
    assert_true(size_round_up(INT64_MAX, 64) == SIZE_TOO_LARGE);
}

static void test_checks(void **state)
{
    (void)state;
    int64_t x;
    assert_true(checked_add(INT64_MIN, INT64_MAX, &x) && x == -1);
    assert_false(checked_add(INT64_MAX, 1, &x));
    assert_true(checked_mul(-1, INT64_MAX, &x) && x == -INT64_MAX);
    assert_false(checked_mul(-1, INT64_MIN, &x));
}

static void test_converts(void **state)
{
    (void)state;
    assert_true(int64_of(-2.9, 7) == -2);
    assert_true(int64_of(0x1p62, 7) == (int64_t)1 << 62);
    assert_true(int64_of(0x1p63, 7) == INT64_MAX && int64_of(INFINITY, 7) == INT64_MAX);
    assert_true(int64_of(-0x1p63, 7) == INT64_MIN && int64_of(-1e300, 7) == INT64_MIN);
    assert_true(int64_of((double)NAN, 7) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_saturates),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_converts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
