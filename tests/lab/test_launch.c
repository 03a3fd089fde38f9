/* What of lab launch is pure: from which kernel on launches are hidden, the share of copies that is
 * hidden, and the check that every timed way must pass. */
#include "lab/launch/launch_parts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_launches_are_hidden_from_a_work_on(void **state)
{
    (void)state;
    static const double alone[] = {1, 2, 4, 8};
    static const struct {
        double started[4];
        double most;
        int from;
    } all[] = {
        {{2, 2.5, 4.1, 8.1}, 1.1, 2}, {{1, 2, 4, 8}, 1, 0},           {{2, 3, 5, 9}, 1, -1},
        {{1, 3, 4, 8}, 1.1, 2},       {{1, 2, 4, 9}, 1.1, -1}, /* the last decides */
        {{2, 3, 5, 8}, 1, 3},         {{1.1, 2.2, 4.4, 8.8}, 1.2, 0},
    };
    for (int i = 0; i < COUNT_OF(all); i++)
        assert_int_equal(launch_from(alone, all[i].started, 4, all[i].most), all[i].from);
    assert_int_equal(launch_from(alone, alone, 0, 1), -1);
}

static void test_the_hidden_share(void **state)
{
    (void)state;
    static const double part[] = {3, 4, 2}, one[] = {0, 5, 0};
    assert_float_equal(launch_hidden(part, 3, 9), 0, 1e-12);
    assert_float_equal(launch_hidden(part, 3, 4), 1, 1e-12);
    assert_float_equal(launch_hidden(part, 3, 6.5), 0.5, 1e-12);
    assert_float_equal(launch_hidden(part, 3, 12), 0, 1e-12); /* slower than one after the other */
    assert_float_equal(launch_hidden(part, 3, 3.9), 1, 1e-12);
    assert_true(isnan(launch_hidden(one, 3, 5)));
}

static double index_of(int64_t i)
{
    return (double)i;
}

static void test_a_wrong_element_is_named(void **state)
{
    (void)state;
    float y[] = {7, 8, 9}, same[] = {7, 7, 7};
    assert_int_equal(launch_check(y, 3, index_of, 7, "graph"), ST_OK);
    assert_int_equal(launch_check(same, 3, NULL, 7, "graph"), ST_OK);
    assert_int_equal(launch_check(y, 3, NULL, 7, "graph"), ST_NUMERIC);
    y[2] = NAN;
    assert_int_equal(launch_check(y, 3, index_of, 7, "two streams"), ST_NUMERIC);
    assert_non_null(strstr(fail_message(), "two streams: element 2 is nan instead of 9"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches_are_hidden_from_a_work_on),
        cmocka_unit_test(test_the_hidden_share),
        cmocka_unit_test(test_a_wrong_element_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
