#include "base/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
static void test_nothing_and_one(void **state)
{
    (void)state;
    struct stats none = stats_of(NULL, 0);
    assert_int_equal(none.n, 0);
    assert_float_equal(none.mean, 0, 0);
    assert_float_equal(none.p95, 0, 0);
    double x = 7;
    struct stats one = stats_of(&x, 1);
    assert_int_equal(one.n, 1);
    assert_float_equal(one.std, 0, 0);
    assert_float_equal(one.median, 7, 0);
    assert_float_equal(one.p95, 7, 0);
}

/* 2, 4, 4, 4, 5, 5, 7, 9: the mean is 5, the sum of squared deviations 32, so the sample's std is
 * sqrt(32/7). */
static void test_known_series(void **state)
{
    (void)state;
    const double x[] = {9, 4, 5, 2, 4, 5, 7, 4};
    struct stats s = stats_of(x, 8);
    assert_int_equal(s.n, 8);
    assert_float_equal(s.mean, 5, 1e-12);
    assert_float_equal(s.std, 2.1380899352993952, 1e-12);
    assert_float_equal(s.median, 4.5, 1e-12);
    assert_float_equal(s.min, 2, 0);
    assert_float_equal(s.max, 9, 0);
    assert_float_equal(s.p25, 4, 1e-12);
    assert_float_equal(s.p75, 5 + 0.25 * 2, 1e-12); /* at 0.75 * 7 = 5.25 between 5 and 7 */
    assert_float_equal(s.p95, 7 + 0.65 * 2, 1e-12); /* at 0.95 * 7 = 6.65 between 7 and 9 */
    assert_float_equal(x[0], 9, 0);                 /* input order unchanged */
}

/* A single-pass sum of squares would lose all digits here. */
static void test_far_from_zero(void **state)
{
    (void)state;
    const double x[] = {1e9 + 1, 1e9 + 2, 1e9 + 3};
    struct stats s = stats_of(x, 3);
    assert_float_equal(s.std, 1, 1e-9);
    assert_float_equal(s.median, 1e9 + 2, 0);
}

/* A quarter of a short run, but at most five steps. */
static void test_warm_up(void **state)
{
    (void)state;
    assert_int_equal(warm_up_of(0), 0);
    assert_int_equal(warm_up_of(3), 0);
    assert_int_equal(warm_up_of(8), 2);
    assert_int_equal(warm_up_of(20), 5);
    assert_int_equal(warm_up_of(1000000), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_and_one),
        cmocka_unit_test(test_known_series),
        cmocka_unit_test(test_far_from_zero),
        cmocka_unit_test(test_warm_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
