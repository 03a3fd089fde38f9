#include "engine/lr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* nanoGPT's Shakespeare run: 1e-3 to 1e-4, 100 iterations of warm-up, 5000 of decay. */
static struct config_train schedule(void)
{
    return (struct config_train){.learning_rate = 1e-3,
                                 .min_lr = 1e-4,
                                 .decay_lr = true,
                                 .warmup_iters = 100,
                                 .lr_decay_iters = 5000};
}

/* Computed with get_lr of nanoGPT's train.py. */
static void test_known_values(void **state)
{
    (void)state;
    const struct {
        int64_t iter;
        double lr;
    } known[] = {
        {0, 9.900990099009901e-06},
        {1, 1.9801980198019803e-05},
        {50, 5.04950495049505e-04},
        {99, 9.900990099009901e-04},
        {100, 1e-3},
        {101, 9.99999907510999e-04},
        {1325, 8.681980515339464e-04},
        {2550, 5.5e-04},
        {4999, 1.0000009248900101e-04},
        {5000, 1e-4},
        {5001, 1e-4},
        {1000000, 1e-4},
    };
    struct config_train c = schedule();
    for (int i = 0; i < COUNT_OF(known); i++)
        assert_true(fabs(lr_at(&c, known[i].iter) - (known[i].lr)) <= 1e-17);
}

static void test_constant(void **state)
{
    (void)state;
    struct config_train c = schedule();
    c.decay_lr = false;
    const int64_t iters[] = {0, 50, 4000, 9000};
    for (int i = 0; i < COUNT_OF(iters); i++) assert_true(fabs(lr_at(&c, iters[i]) - (1e-3)) <= 0);
}

/* No division by zero: a warm-up as long as the decay, and no warm-up. */
static void test_edges(void **state)
{
    (void)state;
    struct config_train c = schedule();
    c.warmup_iters = c.lr_decay_iters = 10;
    assert_true(fabs(lr_at(&c, 9) - (1e-3 * 10 / 11)) <= 1e-15);
    assert_true(fabs(lr_at(&c, 10) - (1e-4)) <= 0);
    c.warmup_iters = 0;
    assert_true(fabs(lr_at(&c, 0) - (1e-3)) <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
