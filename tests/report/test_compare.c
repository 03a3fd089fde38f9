#include "../support/run_fixture.h"
#include "base/str.h"
#include "report/compare.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A column of the headline table by its id. */
static const struct table_cell *cell(const struct comparison *c, int row, const char *id)
{
    for (int i = 0; i < c->table.columns; i++)
        if (strcmp(c->table.column[i].id, id) == 0) return table_at(&c->table, row, i);
    fail_msg("no column %s", id);
    return NULL;
}

static struct comparison compare(struct fixture *f, char **dirs, int n)
{
    struct run *run;
    if (runs_read(dirs, n, &f->arena, &run) != ST_OK) fail_msg("%s", fail_message());
    struct comparison c;
    compare_runs(run, n, &f->arena, &c);
    return c;
}

static struct comparison two_runs(struct fixture *f)
{
    char *dirs[] = {fixture_run(f, "slow", "false", 40, 8000, 3.25),
                    fixture_run(f, "flash", "true", 20, 6000, 3.24)};
    return compare(f, dirs, 2);
}

static void test_differing_keys_are_named(void **state)
{
    struct fixture *f = *state;
    struct comparison c = two_runs(f);
    assert_int_equal(c.settings, 1); /* data_dir and out_dir differ too, and are ignored */
    assert_string_equal(c.setting[0].key, "flash");
    assert_string_equal(c.setting[0].value[0], "false");
    assert_string_equal(c.setting[0].value[1], "true");
    assert_int_equal(c.environments, 0);
    assert_int_equal(c.notes, 0);
}

static void test_a_key_that_one_run_lacks_differs(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 20, 6000, 3.2), NULL};
    fixture_write(f, "b/config.conf", "flash = true\nn_layer = 2\nnew_key = 1\n");
    fixture_write(f, "b/env.json", "{\"cpu\":\"Another\",\"threads\":4}");
    fixture_write(f, "c/log.jsonl",
                  "{\"v\":1,\"kind\":\"step\",\"iter\":1,\"loss\":null,\"ms\":3}\n");
    dirs[2] = fixture_path(f, "c"); /* has no config.conf: unknown, not different */
    struct comparison c = compare(f, dirs, 3);
    assert_int_equal(c.settings, 1);
    assert_string_equal(c.setting[0].key, "new_key");
    assert_null(c.setting[0].value[0]);
    assert_string_equal(c.setting[0].value[1], "1");
    assert_string_equal(c.environment[1].key, "cpu");
    struct str notes = {0};
    for (int i = 0; i < c.notes; i++) str_printf(&notes, "%s\n", c.note[i]);
    assert_non_null(strstr(str_text(&notes), "different processors"));
    assert_non_null(strstr(str_text(&notes), "c diverged: its loss is NaN or infinite at iter"));
    assert_null(strstr(str_text(&notes), "b is not finished"));
    str_release(&notes);
}

/* Losses of other data, evaluations and seeds are not compared; those of other batches are, after
 * equally many tokens. */
static void test_losses_that_are_not_comparable(void **state)
{
    static const char *const conf[] = {"dataset = x", "eval_iters = 5", "block_size = 8",
                                       "seed = 7"};
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 20, 6000, 3.2)};
    fixture_write(f, "a/config.conf", "dataset = y\neval_iters = 9\nblock_size = 4\nseed = 1\n");
    for (int i = 0; i < COUNT_OF(conf); i++) {
        fixture_write(f, "b/config.conf", conf[i]);
        struct comparison c = compare(f, dirs, 2);
        assert_non_null(strstr(c.verdict[0], "losses are not compared, because they have diff"));
    }
    fixture_write(f, "b/config.conf", "dataset = x\n"); /* the same text under another name */
    fixture_write(f, "a/vocabulary.json", "{\"val\":{\"sha256\":\"12\"}}");
    fixture_write(f, "b/vocabulary.json", "{\"val\":{\"sha256\":\"12\"}}");
    assert_non_null(strstr(compare(f, dirs, 2).verdict[0], "validation losses are equal"));
    fixture_write(f, "b/vocabulary.json", "{\"val\":{\"sha256\":\"13\"}}");
    assert_non_null(strstr(compare(f, dirs, 2).verdict[0], "evaluated on different texts"));
    fixture_write(f, "b/vocabulary.json", "{\"val\":{\"sha256\":\"12\"}}");
    /* twice the tokens: a's evaluation of iteration 10 is b's of iteration 5 */
    fixture_write(f, "b/plan.json", "{\"v\":1,\"tokens_per_step\":2000}");
    struct comparison c = compare(f, dirs, 2);
    assert_non_null(strstr(c.verdict[0], "by at most 0.3 at the one evaluation they share after "
                                         "equally many tokens"));
    assert_string_equal(cell(&c, 1, "tokens")->text, "20,000");
    assert_null(strstr(c.verdict[0], "batch_size"));
    fixture_write(f, "b/config.conf", "batch_size = 9\n");
    assert_non_null(strstr(compare(f, dirs, 2).verdict[0],
                           " after equally many tokens, each on batches of its own batch_size ("));
    fixture_write(f, "b/plan.json", "{\"v\":1,\"tokens_per_step\":3000}");
    assert_non_null(
        strstr(compare(f, dirs, 2).verdict[0], "never evaluated after equally many training"));
}

/* How a run ended is in the table and a note; a NaN is no loss that others are compared with. */
static void test_ends(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 20, 6000, 3.2)};
    struct comparison c = compare(f, dirs, 2);
    assert_null(cell(&c, 1, "end")->text);
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":7,\"complete\":false,\"end\":\"nan\","
                  "\"why\":\"iteration 7: the loss is NaN\"}");
    c = compare(f, dirs, 2);
    assert_string_equal(cell(&c, 1, "end")->text, "NaN at 7");
    assert_string_equal(cell(&c, 1, "final_val_loss")->text, "NaN");
    assert_non_null(
        strstr(c.verdict[0], "losses are not compared, because the loss of b became NaN"));
    assert_string_equal(c.note[0], "b diverged: iteration 7: the loss is NaN.");
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":10,\"complete\":false,\"end\":\"interrupted\"}");
    c = compare(f, dirs, 2);
    assert_string_equal(cell(&c, 1, "end")->text, "interrupted");
    assert_string_equal(c.note[0], "b is not finished: it ends at iteration 10: interrupted.");
    fixture_write(f, "b/summary.json", "{\"v\":1,\"iters\":10,\"complete\":false}");
    c = compare(f, dirs, 2);
    assert_non_null(strstr(c.note[0], "its end is not on record"));
}

static void test_headline_numbers(void **state)
{
    struct fixture *f = *state;
    struct comparison c = two_runs(f);
    assert_string_equal(cell(&c, 1, "run")->text, "flash");
    assert_string_equal(cell(&c, 1, "tokens_per_s")->text, "50,000");
    assert_string_equal(cell(&c, 0, "ms_median")->text, "40.00");
    assert_float_equal(cell(&c, 0, "speed")->number, 1, 1e-12);
    assert_string_equal(cell(&c, 1, "speed")->text, "2.00 x");
    assert_string_equal(cell(&c, 1, "memory_ratio")->text, "-25.0 %");
    assert_string_equal(cell(&c, 1, "final_val_loss")->text, "3.2400");
    double largest, last;
    assert_int_equal(compare_val_loss(&c.run[0], &c.run[1], &largest, &last), 2);
    assert_float_equal(largest, 0.01, 1e-12);
    assert_float_equal(last, -0.01, 1e-12);
    assert_int_equal(c.verdicts, 1);
    assert_string_equal(
        c.verdict[0],
        "flash is 2.00 times as fast as slow (1.93 to 2.08, measured apart), with 25.0 "
        "% less memory; validation losses differ by at most 0.01 over 2 evaluations (-0.01 at the "
        "last).");
}

/* A difference below the smallest one with a name. */
static void test_small_difference(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 20.3, 6000, 3.2)};
    struct comparison c = compare(f, dirs, 2);
    assert_int_equal(c.settings, 0);
    assert_string_equal(
        c.verdict[0],
        "b cannot be told apart in speed from a (0.94 to 1.04 times as fast, measured "
        "apart), with the same memory; validation losses are equal over 2 evaluations.");
}

/* A log with `n` turns of `strobe compare` number `of`, each `ms` and a burst at every third. */
static void write_turns(struct fixture *f, const char *name, int of, int n, double ms)
{
    struct str s = {0};
    for (int i = 0; i < n; i++) {
        double t = ms * (i % 3 ? 1 : 1.5);
        str_printf(&s,
                   "{\"v\":1,\"kind\":\"step\",\"iter\":%d,\"loss\":4,\"ms\":%g}\n"
                   "{\"v\":1,\"kind\":\"turn\",\"iter\":%d,\"of\":%d,\"turn\":%d,\"iters\":1,"
                   "\"ms\":%g}\n",
                   i, t, i, of, i + 1, t);
    }
    fixture_write(f, arena_printf(&f->arena, "%s/log.jsonl", name), str_text(&s));
    str_release(&s);
}

/* Bursts that hit a pair cancel; turns of another `strobe compare` are no pairs. */
static void test_turns(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 20, 6000, 3.2)};
    write_turns(f, "a", 7, 20, 11);
    write_turns(f, "b", 7, 18, 10);
    struct comparison c = compare(f, dirs, 2);
    assert_int_equal(c.speed[1].how, JUDGED_IN_TURNS);
    assert_string_equal(c.verdict[0], "b is 1.10 times as fast as a (1.10 to 1.10, in 18 turns), "
                                      "with the same memory.");
    assert_string_equal(cell(&c, 1, "speed")->text, "1.10 x");
    write_turns(f, "a", 7, 7, 11);
    write_turns(f, "b", 7, 7, 10);
    assert_string_equal(compare(f, dirs, 2).verdict[0],
                        "b cannot be told apart in speed from a (1.10 to 1.10 times as fast, 7 "
                        "turns were measured; a verdict needs 8), with the same memory.");
    write_turns(f, "a", 7, 20, 11);
    write_turns(f, "b", 8, 18, 10);
    c = compare(f, dirs, 2);
    assert_int_equal(c.speed[1].how, JUDGED_APART);
    assert_string_equal(c.verdict[0],
                        "b cannot be told apart in speed from a (0.73 to 1.65 times as fast, "
                        "measured apart), with the same memory.");
    assert_string_equal(cell(&c, 1, "speed")->text, "cannot tell");
}

static void write_plan(struct fixture *f, const char *name, const char *work)
{
    fixture_write(f, arena_printf(&f->arena, "%s/plan.json", name),
                  arena_printf(&f->arena,
                               "{\"v\":1,\"tokens_per_step\":1000,\"plan_sha256\":\"%s\","
                               "\"memory\":{\"total\":6000}}",
                               work));
}

/* Equal plans: whatever the clock says is noise, unless program or machine differ. */
static void test_equal_plans(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 40, 6000, 3.2)};
    write_plan(f, "a", "abc");
    write_plan(f, "b", "abc");
    struct comparison c = compare(f, dirs, 2);
    assert_string_equal(c.verdict[0], "b has the same plan as a, so their speeds are not compared; "
                                      "validation losses are equal over 2 evaluations.");
    assert_string_equal(cell(&c, 1, "speed")->text, "same plan");
    write_plan(f, "b", "abd");
    assert_int_equal(compare(f, dirs, 2).speed[1].how, JUDGED_APART);
    write_plan(f, "b", "abc");
    fixture_write(f, "a/env.json", "{\"commit\":\"1\",\"date\":\"x\"}");
    fixture_write(f, "b/env.json", "{\"commit\":\"2\",\"date\":\"y\"}");
    assert_int_equal(compare(f, dirs, 2).speed[1].how, JUDGED_APART);
    fixture_write(f, "b/env.json", "{\"commit\":\"1\",\"date\":\"y\"}");
    assert_int_equal(compare(f, dirs, 2).speed[1].how, JUDGED_SAME_PLAN);
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":10,\"complete\":true,\"others_busy\":0.75}");
    c = compare(f, dirs, 2);
    assert_non_null(strstr(c.note[0], "so its times are long"));
}

/* Apart on a busy machine: no verdict, however large the difference. */
static void test_busy_and_apart(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 40, 6000, 3.2)};
    const char *busy = "{\"v\":1,\"iters\":10,\"complete\":true,\"others_busy\":0.75}";
    fixture_write(f, "b/summary.json", busy);
    struct comparison c = compare(f, dirs, 2);
    assert_non_null(strstr(c.verdict[0], "cannot be compared in speed with a, because other "
                                         "programs used the machine meanwhile"));
    assert_non_null(strstr(c.note[0], "Other programs used 75 % of the processors while b ran"));
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":10,\"complete\":true,\"gauges\":{\"others\":0.5}}");
    c = compare(f, dirs, 2);
    assert_int_equal(c.speed[1].how, JUDGED_BUSY);
    assert_non_null(strstr(c.note[0], "on the GPU for 50 % of the time while b ran"));
    fixture_write(f, "b/summary.json", busy);
    write_turns(f, "a", 7, 20, 11);
    write_turns(f, "b", 7, 20, 10);
    c = compare(f, dirs, 2);
    assert_non_null(strstr(c.verdict[0], "b is 1.10 times as fast as a"));
}

/* Times are not compared if other programs used the machine, or of only a few steps. */
static void test_unreliable_times(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 40, 6000, 3.2)};
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":10,\"complete\":true,\"others_busy\":0.09}");
    assert_int_equal(compare(f, dirs, 2).notes, 0);
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":10,\"complete\":true,\"others_busy\":0.5}");
    struct comparison c = compare(f, dirs, 2);
    assert_int_equal(c.notes, 1);
    assert_string_equal(c.note[0], "Other programs used 50 % of the processors while b ran, so its "
                                   "times are long.");
    fixture_write(
        f, "b/log.jsonl",
        "{\"v\":1,\"kind\":\"step\",\"iter\":0,\"loss\":4,\"ms\":40,\"tokens_per_s\":9}\n"
        "{\"v\":1,\"kind\":\"step\",\"iter\":1,\"loss\":4,\"ms\":40,\"tokens_per_s\":9}\n");
    assert_string_equal(compare(f, dirs, 2).verdict[0], "b runs with the same memory.");
}

/* A summary with telemetry of the device. */
static void write_gauges(struct fixture *f, const char *name, double mhz, double throttled)
{
    fixture_write(f, arena_printf(&f->arena, "%s/summary.json", name),
                  arena_printf(&f->arena,
                               "{\"v\":1,\"iters\":10,\"complete\":true,\"gauges\":{"
                               "\"utilization\":{\"mean\":97.4},\"clock_mhz\":{\"mean\":%g},"
                               "\"power_w\":{\"mean\":612},\"joules_per_token\":0.02,"
                               "\"throttled\":%g,\"throttled_by\":{\"power limit\":%g}}}",
                               mhz, throttled, throttled));
}

/* Clocks are printed next to times, with a note if they explain a difference. */
static void test_clocks(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 22, 6000, 3.2)};
    struct comparison c = compare(f, dirs, 2);
    assert_null(cell(&c, 0, "clock_mhz")->text);
    assert_null(cell(&c, 0, "tokens_per_joule")->text);
    write_gauges(f, "a", 1980, 0);
    write_gauges(f, "b", 1950, 0.04);
    c = compare(f, dirs, 2);
    assert_int_equal(c.notes, 0);
    assert_string_equal(cell(&c, 1, "utilization")->text, "97 %");
    assert_string_equal(cell(&c, 1, "clock_mhz")->text, "1950");
    assert_string_equal(cell(&c, 1, "power_w")->text, "612");
    assert_string_equal(cell(&c, 1, "tokens_per_joule")->text, "50");
    assert_string_equal(cell(&c, 1, "throttled")->text, "4.0 %");
    write_gauges(f, "b", 1782, 0.3);
    c = compare(f, dirs, 2);
    assert_int_equal(c.notes, 2);
    assert_string_equal(
        c.note[0],
        "While b ran, the clock of its device was lowered 30 % of the time: power limit.");
    assert_string_equal(c.note[1], "b ran at a clock 10 % lower than a, which explains part of the "
                                   "difference in time.");
    /* Clocks of two devices are not compared. */
    fixture_write(f, "b/env.json", "{\"cpu\":\"Another\",\"threads\":4}");
    c = compare(f, dirs, 2);
    for (int i = 0; i < c.notes; i++) assert_null(strstr(c.note[i], "ran at a clock"));
}

static void test_text_is_aligned(void **state)
{
    struct fixture *f = *state;
    struct comparison c = two_runs(f);
    struct str s = {0};
    table_print_text(&c.table, &s);
    const char *head = str_text(&s), *slow = strchr(head, '\n') + 1,
               *flash = strchr(slow, '\n') + 1;
    assert_memory_equal(slow, "slow   ", 7);
    assert_memory_equal(flash, "flash  ", 7);
    assert_int_equal(strchr(flash, '\n') - flash, flash - slow - 1);
    /* The sign of plus-minus is two bytes and one column. */
    assert_int_equal(flash - slow, slow - head - 1);
    assert_int_equal(table_width("± std"), 5);
    str_release(&s);
}

static void test_one_run_has_no_ratios(void **state)
{
    struct fixture *f = *state;
    char *dir = fixture_run(f, "a", "true", 20, 6000, 3.2);
    struct comparison c = compare(f, &dir, 1);
    assert_int_equal(c.settings + c.verdicts + c.notes, 0);
    struct str s = {0};
    table_print_text(&c.table, &s);
    assert_null(strstr(str_text(&s), "speed"));
    assert_non_null(strstr(str_text(&s), "ms/iter"));
    str_release(&s);
    table_print_csv(&c.table, &s); /* CSV has every column */
    assert_non_null(strstr(str_text(&s), ",speed,"));
    str_release(&s);
}

static void test_formats_agree(void **state)
{
    struct fixture *f = *state;
    static const struct table_column column[] = {
        {"name", "name", "", false}, {"x", "the x", "", true}, {"none", "none", "", true}};
    struct table_cell cells[] = {{"a,\"b\"|c", NAN}, {"1.5 s", 1.5}, {NULL, NAN},
                                 {"d", NAN},         {NULL, NAN},    {NULL, NAN}};
    struct table t = {column, cells, 3, 2};
    (void)f;
    struct str s = {0};
    table_print_text(&t, &s);
    assert_string_equal(str_text(&s), "name     the x\na,\"b\"|c  1.5 s\nd            -\n");
    str_release(&s);
    table_print_markdown(&t, &s);
    assert_string_equal(str_text(&s),
                        "| name | the x |\n|---|---:|\n| a,\"b\"\\|c | 1.5 s |\n| d | - |\n");
    str_release(&s);
    table_print_csv(&t, &s);
    assert_string_equal(str_text(&s), "name,x,none\n\"a,\"\"b\"\"|c\",1.5,\nd,,\n");
    str_release(&s);
    json_t *json = table_json(&t);
    json_t *want = json_pack("[{s:s, s:f, s:n}, {s:s, s:n, s:n}]", "name", "a,\"b\"|c", "x", 1.5,
                             "none", "name", "d", "x", "none");
    assert_true(json_equal(json, want));
    json_decref(json);
    json_decref(want);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_differing_keys_are_named),
        WITH_FIXTURE(test_a_key_that_one_run_lacks_differs),
        WITH_FIXTURE(test_losses_that_are_not_comparable),
        WITH_FIXTURE(test_ends),
        WITH_FIXTURE(test_headline_numbers),
        WITH_FIXTURE(test_small_difference),
        WITH_FIXTURE(test_turns),
        WITH_FIXTURE(test_equal_plans),
        WITH_FIXTURE(test_busy_and_apart),
        WITH_FIXTURE(test_unreliable_times),
        WITH_FIXTURE(test_clocks),
        WITH_FIXTURE(test_text_is_aligned),
        WITH_FIXTURE(test_one_run_has_no_ratios),
        WITH_FIXTURE(test_formats_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
