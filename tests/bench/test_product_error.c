/* The error of one product: of f32 and bf16 on a CPU, against what rounding explains. */
#include "bench/product_error.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* An element has a relative error between 0 and half a unit in the last place, depending on its
 * mantissa: of bf16, with 8 bits, 2^-9 at most. Two operands and a result are rounded. */
static void test_errors(void **state)
{
    (void)state;
    struct device cpu = {backend_find("cpu"), 0};
    double f32, bf16;
    assert_int_equal(product_error(&cpu, MACHINE_F32, &f32), ST_OK);
    assert_int_equal(product_error(&cpu, MACHINE_BF16, &bf16), ST_OK);
    assert_true(f32 > 0x1p-27 && f32 < 0x1p-20);
    assert_true(bf16 > 0x1p-10 && bf16 < sqrt(3) * 0x1p-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
