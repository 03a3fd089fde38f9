/* The batch that fits, and the time of steps before they run.
 * test: alone; it compares times */
#include "bench/forecast.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/isa.h"
#include "base/threads.h"
#include "bench/bench_grid.h"
#include "engine/device.h"
#include "measure/random_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { BATCH = 4 };
static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct bench_cell cell_of(const char *phases)
{
    struct bench_cell c = {.vocab = TINY_VOCAB, .warmup = 1, .steps = 4};
    struct config tiny = tiny_config();
    config_init(&c.config); /* sets every text */
    config_choose(&c.config, &(struct config_facts){0});
    c.config.model = tiny.model;
    c.config.plan = tiny.plan;
    c.config.plan.threads = 1;
    c.config.data.batch_size = BATCH;
    threads_set(1);
    hand_ok(bench_read_lines(&c.lines, phases));
    return c;
}

static int64_t bytes(struct config c, int64_t batch, enum memory_extent extent)
{
    int64_t ret;
    c.data.batch_size = batch;
    hand_ok(random_step_bytes(&c, TINY_VOCAB, extent, &ret));
    return ret;
}

/* A step that fits with fewer sequences decides; without one, the backward pass. */
static void test_the_batch_that_fits(void **state)
{
    (void)state;
    struct bench_cell c = cell_of("backward,step"), all = c;
    unsigned lines, backward = c.lines & ~(1u << BENCH_STEP);
    int64_t most = bytes(c.config, BATCH, EXTENT_STEP), two = bytes(c.config, 2, EXTENT_STEP),
            one = bytes(c.config, 1, EXTENT_STEP), less = bytes(c.config, 1, EXTENT_BACKWARD);
    assert_true(less < one && one < two && two < most);
    const struct {
        int64_t memory_limit, batch;
        unsigned lines;
    } cases[] = {{-1, BATCH, all.lines},   {most, BATCH, all.lines},
                 {most - 1, 3, all.lines}, {two, 2, all.lines},
                 {two - 1, 1, all.lines},  {one, 1, all.lines},
                 {less - 1, BATCH, 0},     {0, BATCH, 0}};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        c = all;
        hand_ok(forecast_fit(&c, cases[i].memory_limit, true, &lines));
        assert_int_equal(c.config.data.batch_size, cases[i].batch);
        assert_int_equal(lines, cases[i].lines);
    }
    c = all;
    hand_ok(forecast_fit(&c, one - 1, true, &lines));
    assert_int_equal(lines, backward);
    int64_t batch = c.config.data.batch_size;
    assert_true(bytes(all.config, batch, EXTENT_BACKWARD) < one);
    assert_true(batch == BATCH || bytes(all.config, batch + 1, EXTENT_BACKWARD) >= one);
    /* the batch of the command line stays */
    c = all;
    hand_ok(forecast_fit(&c, most - 1, false, &lines));
    assert_true(c.config.data.batch_size == BATCH && lines != all.lines);
}

/* Of all runs, if each were as fast as the fastest of its line: what other programs take is no part
 * of the forecast. */
static double measured_ms(const struct bench_cell *c)
{
    double ms = 0;
    for (int l = 0; l < BENCH_LINES; l++)
        if (l != BENCH_DIFFERENCE && c->lines >> l & 1) ms += c->line[l].ms.min * c->runs;
    return ms;
}

/* Within a factor of 3 of what the steps take, by the peaks of the same minute. */
static void test_the_time_of_steps(void **state)
{
    (void)state;
    struct machine m;
    struct device device;
    struct bench_options o = {.order = BENCH_ONCE};
    static const char *const phases[] = {"forward", "backward,step", "inference,update"};
    if (SANITIZED) SKIP("times say nothing with sanitizers");
    struct bench_cell any = cell_of("step");
    hand_ok(device_of(&any.config, &device));
    hand_ok(machine_identify(&m, &device, &arena));
    hand_ok(machine_measure(&m, true, NULL, NULL, &arena));
    for (int i = 0; i < COUNT_OF(phases); i++) {
        struct bench_cell c = cell_of(phases[i]);
        double expected;
        c.config.model.n_embd = 256;
        c.config.model.n_head = 4;
        c.config.model.block_size = 128;
        c.vocab = 4000;
        c.steps = 10;
        hand_ok(forecast_ms(&c, c.lines, &m, &expected));
        hand_ok(bench_cells_run(&o, &c, 1, NULL, &arena));
        assert_null(c.reason);
        double ratio = expected / measured_ms(&c);
        if (ratio < 1.0 / 3 || ratio > 3)
            fail_msg("%s: %.0f ms expected, %.0f measured", phases[i], expected, measured_ms(&c));
    }
}

/* More warm-up, more steps and more sequences take longer, in proportion. */
static void test_the_time_follows_the_work(void **state)
{
    (void)state;
    struct machine m;
    double one, more;
    struct bench_cell c = cell_of("backward,step");
    if (!forecast_guess(&m)) SKIP("the clock of this processor is not known");
    hand_ok(forecast_ms(&c, c.lines, &m, &one));
    assert_true(one > 0);
    c.steps = 9;
    hand_ok(forecast_ms(&c, c.lines, &m, &more));
    assert_float_equal(more / one, 2, 1e-9);
    c.steps = 4;
    hand_ok(forecast_ms(&c, c.lines & ~(1u << BENCH_STEP), &m, &more));
    assert_true(more < one);
    c.config.data.batch_size = 16 * BATCH;
    hand_ok(forecast_ms(&c, c.lines, &m, &more));
    assert_true(more > 4 * one && more < 16 * one); /* the update stays */
}

static void test_a_guess(void **state)
{
    (void)state;
    struct machine any, plain;
    threads_set(2);
    if (!forecast_guess(&any)) SKIP("the clock of this processor is not known");
    hand_ok(isa_limit(ISA_PLAIN));
    assert_true(forecast_guess(&plain));
    hand_ok(isa_limit(ISA_AUTO));
    double lanes = any.peak[0].flops / plain.peak[0].flops;
    assert_true(lanes == 1 || lanes == 4 || lanes == 8 || lanes == 16);
    assert_true(any.threads == 2 && any.copies == 1 && any.copy[0].moved == 16e9);
    threads_set(1);
    assert_true(forecast_guess(&plain));
    assert_float_equal(any.peak[0].flops / plain.peak[0].flops, 2, 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_the_batch_that_fits, release),
        cmocka_unit_test_teardown(test_the_time_of_steps, release),
        cmocka_unit_test_teardown(test_the_time_follows_the_work, release),
        cmocka_unit_test_teardown(test_a_guess, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
