/* A report as a gate: what is a regression, what the rule cannot tell, and the files for continuous
 * integration. Also the notes where the clock of a run and its profile disagree. */
#include "../support/profile_text.h"
#include "../support/run_fixture.h"
#include "base/str.h"
#include "present/markup.h"
#include "report/report.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct report gate(struct fixture *f, char **dirs, int n)
{
    struct report r;
    if (report_read(&r, dirs, n, &f->arena) != ST_OK) fail_msg("%s", fail_message());
    if (report_gate(&r, &f->arena) != ST_OK) fail_msg("%s", fail_message());
    return r;
}

static const struct gate_case *find(const struct gate *g, const char *what)
{
    for (int i = 0; i < g->n; i++)
        if (!strcmp(g->one[i].what, what)) return &g->one[i];
    fail_msg("no case %s", what);
    return NULL;
}

static void test_outcomes(void **state)
{
    struct fixture *f = *state;
    char *a = fixture_run(f, "a", "true", 20, 6000, 3.2);
    struct {
        double ms, memory;
        enum gate_outcome speed, of_memory, all;
    } cases[] = {
        {40, 6000, GATE_REGRESSION, GATE_PASSED, GATE_REGRESSION},
        {10, 6000, GATE_PASSED, GATE_PASSED, GATE_PASSED},
        {20.2, 6000, GATE_UNCERTAIN, GATE_PASSED, GATE_UNCERTAIN},
        {10, 6130, GATE_PASSED, GATE_REGRESSION, GATE_REGRESSION},
        {10, 6110, GATE_PASSED, GATE_PASSED, GATE_PASSED},
        {20.2, 7000, GATE_UNCERTAIN, GATE_REGRESSION, GATE_REGRESSION},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        char *dirs[] = {a, fixture_run(f, "b", "true", cases[i].ms, cases[i].memory, 3.2)};
        struct report r = gate(f, dirs, 2);
        assert_string_equal(r.gate->baseline, "a");
        assert_int_equal(find(r.gate, "speed")->outcome, cases[i].speed);
        assert_int_equal(find(r.gate, "memory")->outcome, cases[i].of_memory);
        assert_int_equal(r.gate->outcome, cases[i].all);
    }
}

/* Other programs: no verdict. Nothing beside the baseline: an error. */
static void test_no_verdict(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b", "true", 40, 6000, 3.2)};
    fixture_write(f, "b/summary.json",
                  "{\"v\":1,\"iters\":10,\"complete\":true,\"others_busy\":0.75}");
    assert_int_equal(gate(f, dirs, 2).gate->outcome, GATE_UNCERTAIN);
    struct report r;
    assert_int_equal(report_read(&r, dirs, 1, &f->arena), ST_OK);
    assert_int_equal(report_gate(&r, &f->arena), ST_USAGE);
}

/* A NaN always fails, also that of the baseline; a run that was stopped tells less. */
static void test_ends(void **state)
{
    static const struct {
        const char *summary;
        enum gate_outcome outcome;
    } cases[] = {
        {"\"end\":\"nan\",\"why\":\"iteration 4: the loss is NaN\"", GATE_REGRESSION},
        {"\"end\":\"interrupted\"", GATE_UNCERTAIN},
        {"\"end\":\"no disk\",\"why\":\"no space\"", GATE_UNCERTAIN},
    };
    struct fixture *f = *state;
    for (int first = 0; first < 2; first++)
        for (int i = 0; i < COUNT_OF(cases); i++) {
            char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                            fixture_run(f, "b", "true", 10, 6000, 3.2)};
            fixture_write(f, first ? "a/summary.json" : "b/summary.json",
                          arena_printf(&f->arena, "{\"v\":1,\"iters\":4,\"complete\":false,%s}",
                                       cases[i].summary));
            struct report r = gate(f, dirs, 2);
            assert_int_equal(find(r.gate, "end")->outcome, cases[i].outcome);
            assert_int_equal(r.gate->outcome, cases[i].outcome);
        }
}

static void test_files(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 20, 6000, 3.2),
                    fixture_run(f, "b<&>", "true", 40, 6000, 3.2)};
    struct report r = gate(f, dirs, 2);
    struct markup m = {0};
    gate_junit(r.gate, &m);
    const char *text = markup_text(&m);
    assert_non_null(strstr(text, "tests=\"2\" failures=\"1\" skipped=\"0\""));
    assert_non_null(strstr(text, "<testcase classname=\"b&lt;&amp;&gt;\" name=\"speed\">\n    "
                                 "<failure message=\"b&lt;&amp;&gt; is 2."));
    assert_non_null(strstr(text, "<system-out>b&lt;&amp;&gt; has"));
    markup_release(&m);
    json_t *j = gate_json(r.gate);
    assert_string_equal(json_string_value(json_object_get(j, "outcome")), "regression");
    assert_int_equal(json_array_size(json_object_get(j, "cases")), 2);
    json_decref(j);
}

/* A run of 20 ms whose profile has steps of `plain` ms. */
static char *with_profile(struct fixture *f, const char *name, double ms, double plain)
{
    char *dir = fixture_run(f, name, "true", ms, 6000, 3.2);
    struct str chunks = {0};
    for (int i = 0; i < 12; i++) str_printf(&chunks, "%s%g", i ? "," : "", plain);
    const char *text = profile_text(profile_slow, &f->arena);
    fixture_write(f, arena_printf(&f->arena, "%s/profile.json", name),
                  arena_printf(&f->arena,
                               "{\"plain_step_ms\":{\"median\":%g},\"chunks\":{\"of\":5,\"turn\":"
                               "[1,2,3,4,5,6,7,8,9,10,11,12],\"plain_ms\":[%s],\"step_ms\":[%s],"
                               "\"idle_ms\":[%s]},%s",
                               plain, str_text(&chunks), str_text(&chunks), str_text(&chunks),
                               strchr(text, '{') + 1));
    str_release(&chunks);
    return dir;
}

static int notes_with(const struct report *r, const char *words)
{
    int n = 0;
    for (int i = 0; i < r->runs.notes; i++) n += strstr(r->runs.note[i], words) != NULL;
    return n;
}

static void test_clock_and_profile(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {with_profile(f, "a", 20, 20), with_profile(f, "b", 40, 40.5)};
    struct report r = gate(f, dirs, 2);
    assert_int_equal(notes_with(&r, "disagree"), 0);
    assert_int_equal(find(r.gate, "profiled step")->outcome, GATE_REGRESSION);
    dirs[1] = with_profile(f, "b", 40, 10); /* the profile is faster, the run slower */
    r = gate(f, dirs, 2);
    assert_int_equal(notes_with(&r, "The clock of b gives "), 1);
    assert_int_equal(notes_with(&r, "By the clock of the runs b is 2.0"), 1);
    assert_int_equal(find(r.gate, "speed")->outcome, GATE_REGRESSION);
    assert_int_equal(find(r.gate, "profiled step")->outcome, GATE_PASSED);
}

/* Without a profile of the baseline, profiles of others are not held against each other. */
static void test_baseline_without_profile(void **state)
{
    struct fixture *f = *state;
    char *dirs[] = {fixture_run(f, "a", "true", 40, 6000, 3.2), with_profile(f, "b", 20, 20),
                    with_profile(f, "c", 40, 40)};
    struct report r = gate(f, dirs, 3);
    assert_string_equal(r.gate->baseline, "a");
    for (int i = 0; i < r.gate->n; i++)
        assert_string_not_equal(r.gate->one[i].what, "profiled step");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_outcomes),
        WITH_FIXTURE(test_no_verdict),
        WITH_FIXTURE(test_ends),
        WITH_FIXTURE(test_files),
        WITH_FIXTURE(test_clock_and_profile),
        WITH_FIXTURE(test_baseline_without_profile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
