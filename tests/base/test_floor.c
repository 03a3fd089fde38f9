#include "base/floor.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Two threads; each copies 1 or 64 MiB. */
static const struct ceilings machine = {
    .threads = 2, .copies = 2, .copy_bytes = {1 << 20, 1 << 26}, .copy_rate = {4e11, 1e11}};

static void test_the_longer_of_two(void **state)
{
    (void)state;
    struct floor f = floor_of(&machine, 1e12, 1e9, 1e6, NAN);
    assert_float_equal(f.compute_ms, 1, 1e-12);
    assert_float_equal(f.memory_ms, 1e3 * 1e6 / 4e11, 1e-12);
    assert_true(f.ms == f.compute_ms);
    f = floor_of(&machine, 1e12, 1e6, 1e9, NAN);
    assert_true(f.ms == f.memory_ms);
    assert_float_equal(f.ms, 1e3 * 1e9 / 1e11, 1e-12);
}

/* At the geometric mean of two sizes, the bandwidth is the mean of the two. A GPU always uses the
 * bandwidth of the largest copy. */
static void test_the_size_of_the_copy(void **state)
{
    (void)state;
    struct ceilings gpu = machine;
    gpu.gpu = true;
    assert_float_equal(floor_copy_rate(&machine, 2.0 * (1 << 23)), 2.5e11, 1e3);
    assert_float_equal(floor_of(&machine, 0, 0, 2 << 23, NAN).ms, 1e3 * (2 << 23) / 2.5e11, 1e-9);
    assert_float_equal(floor_of(&gpu, 0, 0, 2 << 23, NAN).ms, 1e3 * (2 << 23) / 1e11, 1e-9);
}

/* The time bound of a cached kernel equals its time, but at least that of the fastest copy. */
static void test_cached_bytes(void **state)
{
    (void)state;
    assert_float_equal(floor_of(&machine, 0, 0, 4e8, 9).ms, 4, 1e-12);
    assert_float_equal(floor_of(&machine, 0, 0, 4e8, 3.999).ms, 3.999, 1e-12);
    assert_float_equal(floor_of(&machine, 0, 0, 4e8, 0.5).ms, 1, 1e-12);
}

static void test_unknown_ceilings(void **state)
{
    (void)state;
    const struct ceilings none = {.threads = 1};
    assert_true(floor_of(&none, 0, 1e9, 1e9, 1).ms == 0 && floor_copy_rate(&none, 1e9) == 0);
    assert_true(floor_of(&none, 1e12, 1e9, 1e9, 1).ms == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longer_of_two),
        cmocka_unit_test(test_the_size_of_the_copy),
        cmocka_unit_test(test_cached_bytes),
        cmocka_unit_test(test_unknown_ceilings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
