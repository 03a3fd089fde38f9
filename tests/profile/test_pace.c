/* How many steps there is time for: what a device's first steps compile and record is not how long a step takes. */
#include "profile/collect.h"

#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STEPS = 20 };
static const double LIMIT_MS = 60000;

static struct backend backend;
static struct config config;
static struct engine engine;
static struct profile_options options;
static struct pace pace;

static void begin(bool host, bool replay, int warm)
{
    backend = (struct backend){.host_memory = host};
    config = (struct config){.plan.replay = replay, .train.gradient_accumulation_steps = 1};
    engine = (struct engine){.backend = &backend, .program.config = &config};
    options = (struct profile_options){.steps = STEPS, .warmup = 3, .limit_ms = LIMIT_MS};
    pace_init(&pace, &options, &engine, warm);
}

/* A step that was over `ms` after it began. */
static void took(double ms)
{
    pace.start_ns -= (int64_t)(ms * 1e6);
    pace_end(&pace, ms);
}

static void test_compiling_is_not_a_step(void **state)
{
    (void)state;
    for (int replay = 0; replay < 2; replay++) {
        begin(false, replay, 1);
        for (int cold = 0; cold <= replay; cold++) {
            assert_true(pace_warms(&pace));
            took(50000);
            assert_true(!pace.warned && pace.step_ms == 0);
        }
        assert_true(pace_warms(&pace)); /* nothing is known yet */
        took(10);
        assert_true(!pace.warned && pace.step_ms == 10 && pace.warm_ms == 10);
        int plain;
        assert_int_equal(pace_choose(&pace, &plain), STEPS);
        assert_int_equal(plain, STEPS);
    }
}

static void test_a_slow_step_is_told(void **state)
{
    (void)state;
    begin(true, false, 1);
    took(50000); /* a host compiles nothing */
    assert_true(pace.warned && pace.step_ms == 50000);
    begin(false, false, 1);
    took(100);
    assert_false(pace.warned);
    took(50000);
    assert_true(pace.warned);
    int plain;
    assert_int_equal(pace_choose(&pace, &plain), pace_least(&pace));
    assert_int_equal(plain, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiling_is_not_a_step),
        cmocka_unit_test(test_a_slow_step_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
