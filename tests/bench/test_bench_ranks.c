/* A step of several ranks that are threads: the same work as one rank, and what is refused. */
#include "bench/bench_engine.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "engine/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static struct config config(void)
{
    struct config c, tiny = tiny_config();
    config_init(&c); /* sets every text */
    config_choose(&c, &(struct config_facts){0});
    c.model = tiny.model;
    c.data.batch_size = tiny.data.batch_size;
    c.plan = tiny.plan;
    return c;
}

static double loss_of_ranks(int ranks, int steps, double *ret_ms)
{
    struct config c = config();
    struct bench_engine *b;
    double ms[BENCH_LINES] = {0};
    c.train.gradient_accumulation_steps = 6;
    c.ranks.count = ranks;
    crew_set_threads(&c);
    hand_ok(bench_engine_open(&b, &c, TINY_VOCAB, 1u << BENCH_STEP));
    for (int i = 0; i < steps; i++) hand_ok(bench_engine_step(b, ms));
    double loss = bench_engine_loss(b);
    bench_engine_close(b);
    *ret_ms = ms[BENCH_STEP];
    return loss;
}

/* Ranks share the micro-batches of one rank, so losses and updates are the same but for the order
 * of sums; parts of a step, and MPI, are refused. */
static void test_ranks_run_the_step_of_one(void **state)
{
    (void)state;
    double ms;
    struct bench_engine *b;
    double first = loss_of_ranks(1, 1, &ms), later = loss_of_ranks(1, 4, &ms);
    for (int ranks = 2; ranks <= 3; ranks++) {
        assert_true(fabs(loss_of_ranks(ranks, 1, &ms) - first) < 1e-6);
        assert_true(fabs(loss_of_ranks(ranks, 4, &ms) - later) < 1e-5 && ms > 0);
    }
    assert_true(fabs(later - first) > 1e-4);
    struct config c = config();
    c.train.gradient_accumulation_steps = c.ranks.count = 2;
    assert_int_equal(bench_engine_open(&b, &c, TINY_VOCAB, 1u << BENCH_UPDATE), ST_UNSUPPORTED);
    assert_non_null(strstr(fail_message(), "only whole steps can be timed"));
    c.ranks.by = RANKS_MPI;
    assert_int_equal(bench_engine_open(&b, &c, TINY_VOCAB, 1u << BENCH_STEP), ST_UNSUPPORTED);
    assert_non_null(strstr(fail_message(), "leave out --ranks_by=mpi"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks_run_the_step_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
