#include "../support/run_fixture.h"
#include "report/runs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define STEP(iter, ms) \
    "{\"v\":1,\"kind\":\"step\",\"iter\":" #iter ",\"loss\":2.5,\"ms\":" #ms ",\"lr\":1e-3}\n"

static struct run *read_one(struct fixture *f, char *dir)
{
    struct run *run;
    enum status st = runs_read(&dir, 1, &f->arena, &run);
    if (st != ST_OK) fail_msg("%s", fail_message());
    return run;
}

/* Reading must fail, with each of the words in the message. */
static void expect_refused(struct fixture *f, char *dir, const char *word, const char *other)
{
    struct run *run;
    assert_int_not_equal(runs_read(&dir, 1, &f->arena, &run), ST_OK);
    if (!strstr(fail_message(), word) || !strstr(fail_message(), other))
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", fail_message(), word, other);
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) fail_msg("%.12g, not %.12g", got, want);
}

static void test_reads_everything(void **state)
{
    struct fixture *f = *state;
    fixture_write(f, "a/samples.txt", "ROMEO:\n\xff ends");
    struct run *r = read_one(f, fixture_run(f, "a", "true", 20, 4000, 3.25));
    assert_string_equal(r->name, "a");
    assert_int_equal(r->settings, 4);
    assert_string_equal(run_pair_find(r->setting, r->settings, "flash"), "true");
    assert_null(run_pair_find(r->setting, r->settings, "# model"));
    assert_string_equal(run_pair_find(r->environment, r->environments, "libraries.oneDNN"),
                        "2.6.3");
    assert_string_equal(run_pair_find(r->environment, r->environments, "threads"), "4");
    assert_int_equal(r->steps, 10);
    assert_int_equal(r->step[9].iter, 9);
    near(r->step[9].loss, 3.0);
    near(r->step[9].grad_norm, 1.5);
    assert_int_equal(r->evals, 2);
    near(r->eval[1].val_loss, 3.25);
    near(r->plan.parameters, 5000);
    near(r->plan.weights, 100);
    assert_true(isnan(r->plan.gradients));
    assert_string_equal(r->samples, "ROMEO:\n\xef\xbf\xbd ends");
    assert_true(r->figures.complete);
    near(r->plan.total, 4000);
    near(r->figures.peak_measured, 9000); /* without the plan's value: the memory of the process */
}

static void test_values_without_a_summary(void **state)
{
    struct fixture *f = *state;
    char *dir = fixture_run(f, "a", "true", 20, 4000, 3.25);
    assert_int_equal(remove(fixture_path(f, "a/summary.json")), 0);
    struct run *r = read_one(f, dir);
    assert_false(r->figures.complete);
    assert_int_equal(r->figures.iters, 10);
    near(r->figures.ms_median, 20); /* 19.5 and 20.5 in turn: the slow first two are left out */
    near(r->figures.ms_std, sqrt(8 * 0.25 / 7));
    near(r->figures.tokens_per_s, 50000);
    assert_true(isnan(r->figures.mfu)); /* the peak of that machine was not known */
    near(r->figures.seconds, 2 * 0.2 + 8 * 0.02);
    near(r->figures.best_val_loss, 3.25);
    near(r->figures.final_val_loss, 3.25);
}

static void test_summary_takes_precedence(void **state)
{
    struct fixture *f = *state;
    char *dir = fixture_run(f, "a", "true", 20, 4000, 3.25);
    fixture_write(
        f, "a/summary.json",
        "{\"v\":1,\"mfu\":0.25,\"ms_median\":21,\"tokens_per_s\":null,\"best_val_loss\":3.0,"
        "\"field_of_the_future\":[1]}");
    struct run *r = read_one(f, dir);
    near(r->figures.ms_median, 21);
    near(r->figures.mfu, 0.25);
    near(r->figures.tokens_per_s, 50000);
    near(r->figures.best_val_loss, 3.0);
    near(r->figures.final_val_loss, 3.25);
    assert_false(r->figures.complete);
}

static void test_log_alone_is_enough(void **state)
{
    struct fixture *f = *state;
    fixture_write(f, "a/log.jsonl", STEP(1, 5) STEP(11, 5) "{\"v\":1,\"kind\":\"unheard of\"}\n");
    struct run *r = read_one(f, fixture_path(f, "a/"));
    assert_string_equal(r->name, "a");
    assert_int_equal(r->steps, 2);
    assert_int_equal(r->settings + r->environments + r->evals, 0);
    assert_true(isnan(r->figures.final_val_loss) && isnan(r->plan.total));
    assert_true(isnan(r->figures.tokens_per_s));
    near(r->figures.seconds, 0.055); /* the second line stands for ten steps */
    assert_null(r->samples);
}

#define SAMPLE(iter, ms, steady, rest)                                                            \
    "{\"v\":1,\"kind\":\"sample\",\"iter\":" #iter ",\"ms\":" #ms ",\"steady\":" #steady rest "}" \
    "\n"

/* Means are over steady time; the summary takes precedence. */
static void test_gauges(void **state)
{
    struct fixture *f = *state;
    fixture_write(
        f, "a/log.jsonl",
        SAMPLE(0, 1000, false, ",\"clock_mhz\":300") STEP(1, 5) SAMPLE(
            1, 2000, true, ",\"clock_mhz\":1800,\"power_w\":400,\"clock_max_mhz\":1980")
            SAMPLE(1, 1000, true, ",\"clock_mhz\":1500,\"throttled\":0.5,\"throttle\":[\"heat\"]")
                SAMPLE(9, 0, true, "") SAMPLE(9, 1, true, ",\"clock_mhz\":9999")
                    SAMPLE(2, 1000, true, ""));
    struct run *r = read_one(f, fixture_path(f, "a"));
    const struct gauge_summary *g = &r->figures.gauges;
    assert_int_equal(r->gauges.points, 4); /* the resumed run repeats iteration 9 */
    near(r->gauges.point[2].seconds, 4);
    near(g->value[GAUGE_CLOCK].mean, 1700);
    near(g->value[GAUGE_POWER].mean, 400);
    near(g->throttled, 0.5);
    assert_true(isnan(g->value[GAUGE_UTILIZATION].mean) && isnan(g->joules_per_token));
    near(r->gauges.clock_max_mhz, 1980);
    fixture_write(f, "a/plan.json", "{\"v\":1,\"tokens_per_step\":1000}");
    near(read_one(f, fixture_path(f, "a"))->figures.gauges.joules_per_token, 400 / 2e5);
    fixture_write(f, "a/summary.json",
                  "{\"v\":1,\"gauges\":{\"clock_mhz\":{\"mean\":1600},\"power_w\":null,"
                  "\"joules_per_token\":0.25,\"throttled\":0.125,"
                  "\"throttled_by\":{\"set clock\":1,\"heat\":0.1,\"power limit\":0.025}}}");
    g = &read_one(f, fixture_path(f, "a"))->figures.gauges;
    near(g->value[GAUGE_CLOCK].mean, 1600);
    near(g->value[GAUGE_POWER].mean, 400);
    near(g->joules_per_token, 0.25);
    near(g->throttled, 0.125);
    assert_true(g->reasons == 3 && g->by[2].x == 0.025);
    assert_string_equal(g->by[1].name, "heat");
    fixture_write(f, "a/summary.json", "{\"v\":1,\"gauges\":null}"); /* too few samples */
    g = &read_one(f, fixture_path(f, "a"))->figures.gauges;
    assert_true(isnan(g->value[GAUGE_CLOCK].mean) && isnan(g->joules_per_token));
}

/* Two groups of steps: the median tells of one of them, the run's own time of both. */
static void test_tokens_over_time(void **state)
{
    struct fixture *f = *state;
    fixture_write(f, "a/plan.json", "{\"v\":1,\"tokens_per_step\":1000}");
    fixture_write(f, "a/log.jsonl", STEP(0, 5) STEP(1, 5) STEP(2, 95) STEP(3, 5));
    const struct run_summary *x = &read_one(f, fixture_path(f, "a"))->figures;
    near(x->tokens_per_s, 2e5);
    near(x->run_tokens_per_s, 1000 / 35e-3);
}

static void test_incomplete_last_line_is_ignored(void **state)
{
    struct fixture *f = *state;
    fixture_write(f, "a/log.jsonl", STEP(1, 5) STEP(2, 5) "{\"v\":1,\"kind\":\"st");
    assert_int_equal(read_one(f, fixture_path(f, "a"))->steps, 2);
    fixture_write(f, "a/log.jsonl", STEP(1, 5) "{\"v\":1,\"kind\":\"st\n" STEP(2, 5));
    expect_refused(f, fixture_path(f, "a"), "log.jsonl line 2", "damaged");
}

static void test_values_that_are_not_numbers(void **state)
{
    struct fixture *f = *state;
    fixture_write(
        f, "a/log.jsonl",
        "{\"v\":1,\"kind\":\"step\",\"iter\":1,\"loss\":NaN,\"ms\":null}\n"
        "{\"v\":1,\"kind\":\"step\",\"iter\":2,\"note\":\"nan \\\"inf\",\"loss\":-inf}\n" STEP(3,
                                                                                               7));
    struct run *r = read_one(f, fixture_path(f, "a"));
    assert_int_equal(r->steps, 3);
    assert_true(isnan(r->step[0].loss) && isnan(r->step[0].ms) && isnan(r->step[1].loss));
    near(r->figures.ms_median, 7);
}

static void test_a_resumed_run_replaces_lines(void **state)
{
    struct fixture *f = *state;
    fixture_write(f, "a/log.jsonl",
                  STEP(1, 5) STEP(2, 5) STEP(3, 5) STEP(2, 9) STEP(3, 9) STEP(4, 9));
    struct run *r = read_one(f, fixture_path(f, "a"));
    assert_int_equal(r->steps, 4);
    for (int i = 0; i < 4; i++) assert_int_equal(r->step[i].iter, i + 1);
    near(r->step[0].ms, 5);
    near(r->step[1].ms, 9);
}

static void test_refuses_with_a_message(void **state)
{
    struct fixture *f = *state;
    expect_refused(f, fixture_path(f, "nowhere"), "nowhere", "No such file");
    fixture_write(f, "b/config.conf", "flash = true\n");
    expect_refused(f, fixture_path(f, "b"), "/b has no log.jsonl", "strobe train");
    expect_refused(f, fixture_path(f, "b/config.conf"), "is a file", "directory");
    fixture_write(f, "b/log.jsonl", "");
    expect_refused(f, fixture_path(f, "b"), "log.jsonl is empty", "step");
    fixture_write(f, "b/log.jsonl", "{\"v\":1,\"kind\":\"start\"}\n");
    expect_refused(f, fixture_path(f, "b"), "no step and no evaluation", "log.jsonl");
    fixture_write(f, "b/log.jsonl", STEP(1, 5) "{\"v\":2,\"kind\":\"step\"}\n");
    expect_refused(f, fixture_path(f, "b"), "line 2 has version 2", "version 1");
    fixture_write(f, "b/log.jsonl", "{\"kind\":\"step\"}\n");
    expect_refused(f, fixture_path(f, "b"), "line 1", "no version");
    fixture_write(f, "b/log.jsonl", STEP(1, 5));
    fixture_write(f, "b/plan.json", "{\"v\":7}");
    expect_refused(f, fixture_path(f, "b"), "plan.json", "version 7");
    fixture_write(f, "b/plan.json", "{\"v\":1}");
    fixture_write(f, "b/env.json", "{\"v\":8}");
    expect_refused(f, fixture_path(f, "b"), "env.json", "version 8");
    fixture_write(f, "b/env.json", "{\"v\":1}");
    fixture_write(f, "b/summary.json", "[]");
    expect_refused(f, fixture_path(f, "b"), "summary.json", "JSON object");
    fixture_write(f, "b/summary.json", "{\"v\":1}");
    assert_int_equal(read_one(f, fixture_path(f, "b"))->environments, 0);
}

static void test_runs_of_one_name_keep_their_paths(void **state)
{
    struct fixture *f = *state;
    fixture_write(f, "x/a/log.jsonl", STEP(1, 5));
    fixture_write(f, "y/a/log.jsonl", STEP(1, 5));
    fixture_write(f, "y/b/log.jsonl", STEP(1, 5));
    char *dirs[] = {fixture_path(f, "x/a"), fixture_path(f, "y/a"), fixture_path(f, "y/b")};
    struct run *run;
    assert_int_equal(runs_read(dirs, 3, &f->arena, &run), ST_OK);
    assert_string_equal(run[0].name, dirs[0]);
    assert_string_equal(run[1].name, dirs[1]);
    assert_string_equal(run[2].name, "b");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_reads_everything),
        WITH_FIXTURE(test_values_without_a_summary),
        WITH_FIXTURE(test_summary_takes_precedence),
        WITH_FIXTURE(test_log_alone_is_enough),
        WITH_FIXTURE(test_gauges),
        WITH_FIXTURE(test_tokens_over_time),
        WITH_FIXTURE(test_incomplete_last_line_is_ignored),
        WITH_FIXTURE(test_values_that_are_not_numbers),
        WITH_FIXTURE(test_a_resumed_run_replaces_lines),
        WITH_FIXTURE(test_refuses_with_a_message),
        WITH_FIXTURE(test_runs_of_one_name_keep_their_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
