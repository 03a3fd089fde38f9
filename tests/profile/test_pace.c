/* The number of steps that fit in the limit; compiling and capturing do not count. */
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

/* Runs a step of `ms`. */
static void run_step(double ms)
{
    pace.start_ns -= (int64_t)(ms * 1e6);
    pace_end(&pace, ms);
}

static void test_compiling_does_not_count(void **state)
{
    (void)state;
    for (int replay = 0; replay < 2; replay++) {
        begin(false, replay, 1);
        for (int cold = 0; cold <= replay; cold++) {
            assert_true(pace_warms(&pace));
            run_step(50000);
            assert_true(!pace.warned && pace.step_ms == 0);
        }
        assert_true(pace_warms(&pace)); /* the time of a step is unknown */
        run_step(10);
        assert_true(!pace.warned && pace.step_ms == 10 && pace.warm_ms == 10);
        int plain;
        assert_int_equal(pace_choose(&pace, &plain), STEPS);
        assert_int_equal(plain, STEPS);
    }
}

static void test_a_slow_step_limits_the_number(void **state)
{
    (void)state;
    begin(true, false, 1);
    run_step(50000); /* a host compiles nothing */
    assert_true(pace.warned && pace.step_ms == 50000);
    begin(false, false, 1);
    run_step(100);
    assert_false(pace.warned);
    run_step(50000);
    assert_true(pace.warned);
    int plain;
    assert_int_equal(pace_choose(&pace, &plain), pace_least(&pace));
    assert_int_equal(plain, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compiling_does_not_count),
        cmocka_unit_test(test_a_slow_step_limits_the_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
