/* A timed step is a real one: it must learn from its inputs. */
#include "bench/bench_step.h"

#include "../support/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { WARM_UP = 1, STEPS = 3 };

/* AdamW moves most weights, and none by much more than the learning rate per step. */
static void test_the_update_gets_its_learning_rate(void **state)
{
    (void)state;
    struct tiny t;
    struct bench_step b;
    struct config c = tiny_config();
    tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    int64_t n = t.engine.program.model.elements, moved = 0;
    const float *before = tiny_copy(&t, STORAGE_WEIGHTS, &t.arena);
    assert_int_equal(bench_step_run(&t.engine, WARM_UP, STEPS, NULL, NULL, &b), ST_OK);
    const float *after = tiny_range(&t, STORAGE_WEIGHTS);
    for (int64_t i = 0; i < n; i++) {
        double by = fabs((double)after[i] - (double)before[i]);
        if (!(by <= 10 * (WARM_UP + STEPS) * 1e-4))
            fail_msg("weight %lld moved by %g", (long long)i, by);
        moved += by > 1e-6;
    }
    assert_true(moved > n / 2);
    assert_int_equal(b.step.n, STEPS);
    assert_true(b.step.min > 0 && b.matmuls.min > 0 && b.matmul_flops > 0);
    tiny_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_update_gets_its_learning_rate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
