#include "../support/run_fixture.h"
#include "base/file.h"
#include "base/str.h"
#include "present/assets.h"
#include "present/markup.h"
#include "report/html.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct profile_set no_profiles = {0};

static struct comparison two_runs(struct fixture *f)
{
    char *dirs[] = {fixture_run(f, "a<b>&c", "false", 40, 8000, 3.25),
                    fixture_run(f, "flash", "true", 20, 6000, 3.24)};
    fixture_write(f, "flash/samples.txt",
                  "</script><script>alert(1)</script><!-- \xe2\x80\xa8 \xff");
    fixture_write(f, "flash/config.conf", "start = </SCRIPT>\n");
    struct run *run;
    if (runs_read(dirs, 2, &f->arena, &run) != ST_OK) fail_msg("%s", fail_message());
    struct comparison c;
    compare_runs(run, 2, &f->arena, &c);
    return c;
}

static char *page_of(struct fixture *f)
{
    struct comparison c = two_runs(f);
    char *path = fixture_path(f, "report.html"), *text;
    int64_t size;
    if (html_write(&(struct html_page){&c, &no_profiles, NULL, 0}, path, &f->arena) != ST_OK)
        fail_msg("%s", fail_message());
    assert_int_equal(file_read(path, &f->arena, &text, &size), ST_OK);
    assert_int_equal(strlen(text), size);
    return text;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strcasestr(text, word)); text++) n++;
    return n;
}

static void test_data_cannot_leave_their_element(void **state)
{
    struct fixture *f = *state;
    struct comparison c = two_runs(f);
    struct markup m = {0};
    json_t *data = html_data(&(struct html_page){&c, &no_profiles, NULL, 0}, &f->arena);
    markup_json(&m, data);
    json_decref(data);
    for (const char *p = markup_text(&m); *p; p++) {
        assert_null(strchr("<>&", *p));
        assert_true((unsigned char)*p < 0x80);
    }
    markup_release(&m);
}

static void test_data_are_the_runs(void **state)
{
    struct fixture *f = *state;
    struct comparison c = two_runs(f);
    struct markup m = {0};
    json_t *made = html_data(&(struct html_page){&c, &no_profiles, NULL, 0}, &f->arena);
    markup_json(&m, made);
    json_t *data = json_loads(markup_text(&m), 0, NULL);
    json_decref(made);
    markup_release(&m);
    assert_non_null(data);
    json_t *run = json_array_get(json_object_get(data, "runs"), 1);
    assert_string_equal(json_string_value(json_object_get(run, "samples")),
                        "</script><script>alert(1)</script><!-- \xe2\x80\xa8 \xef\xbf\xbd");
    json_t *steps = json_object_get(run, "steps");
    assert_int_equal(json_array_size(json_object_get(steps, "loss")), 10);
    assert_float_equal(json_number_value(json_array_get(json_object_get(steps, "ms"), 2)), 20.5,
                       1e-6);
    json_t *evals = json_object_get(run, "evals");
    assert_float_equal(json_number_value(json_array_get(json_object_get(evals, "val_loss"), 1)),
                       3.24, 1e-6);
    json_t *table = json_object_get(data, "table");
    assert_int_equal(json_array_size(json_object_get(table, "rows")), 2);
    json_decref(data);
}

static double number_in(json_t *o, const char *key, int i)
{
    json_t *x = json_array_get(json_object_get(o, key), (size_t)i);
    return json_is_number(x) ? json_number_value(x) : NAN;
}

/* A long run is thinned to steps as they were logged: one slow step, one high loss, and the loss
 * that is NaN stay; times and means are over all steps. */
static void test_long_runs_are_thinned(void **state)
{
    struct fixture *f = *state;
    struct str log = {0};
    for (int i = 1; i <= 60000; i++)
        str_printf(&log, "{\"v\":1,\"kind\":\"step\",\"iter\":%d,\"loss\":%s,\"ms\":%d}\n", i,
                   i == 31234   ? "80"
                   : i == 45678 ? "null"
                   : i % 2      ? "1"
                                : "2",
                   i == 20001 ? 500 : 1);
    fixture_write(f, "long/log.jsonl", str_text(&log));
    str_release(&log);
    char *dir = fixture_path(f, "long");
    struct run *run;
    assert_int_equal(runs_read(&dir, 1, &f->arena, &run), ST_OK);
    struct comparison c;
    compare_runs(run, 1, &f->arena, &c);
    json_t *data = html_data(&(struct html_page){&c, &no_profiles, NULL, 0}, &f->arena);
    json_t *steps = json_object_get(json_array_get(json_object_get(data, "runs"), 0), "steps");
    int n = (int)json_array_size(json_object_get(steps, "iter")), high = 0, none = 0, slow = 0;
    assert_int_equal(json_integer_value(json_object_get(steps, "logged")), 60000);
    assert_in_range(n, 1000, HTML_STEPS);
    double sum = 0, of = 0;
    for (int i = 0; i < n; i++) {
        double iter = number_in(steps, "iter", i), loss = number_in(steps, "loss", i);
        high += iter == 31234 && loss == 80;
        none += iter == 45678 && isnan(loss);
        slow += iter == 20001 && number_in(steps, "ms", i) == 500;
        if (!(number_in(steps, "of", i) > 0)) continue;
        sum += number_in(steps, "mean", i) * number_in(steps, "of", i);
        of += number_in(steps, "of", i);
    }
    assert_int_equal(high + none + slow, 3);
    assert_float_equal(of, 59999, 0);
    assert_float_equal(sum, 90000 + 78 - 2, 1e-6);
    assert_float_equal(number_in(steps, "seconds", n - 1), 60.499, 1e-6);
    assert_float_equal(number_in(steps, "iter", n - 1), 60000, 0);
    json_decref(data);
}

static void test_page_is_whole(void **state)
{
    char *page = page_of(*state);
    assert_memory_equal(page, "<!doctype html>", 15);
    assert_non_null(strstr(page, "<title>a&lt;b&gt;&amp;c, flash · Strobe report</title>"));
    assert_int_equal(count_of(page, "<script"), count_of(page, "</script"));
    assert_int_equal(count_of(page, "<script"), 8);
    static const char *const parts[] = {
        "Dygraph",    "strobe.sortTable =", "strobe.timeline =",     "strobe.profileSections =",
        ".drawing {", "--family-0:",        "strobe.benchSections ="};
    for (int i = 0; i < COUNT_OF(parts); i++)
        if (!strstr(page, parts[i])) fail_msg("\"%s\" is not in the page", parts[i]);
    assert_non_null(strstr(page, "Permission is hereby granted")); /* the library's licence */
    assert_non_null(strstr(page, "Dan Vanderkam"));
}

static void test_page_loads_nothing(void **state)
{
    char *page = page_of(*state);
    static const char *const loads[] = {" src=",   "@import",       "url(",
                                        "<iframe", "<img",          "<object",
                                        "import(", "importScripts", "sourceMappingURL"};
    for (int i = 0; i < COUNT_OF(loads); i++)
        if (strcasestr(page, loads[i])) fail_msg("the page has \"%s\"", loads[i]);
    assert_int_equal(count_of(page, "<link"), 1);
    assert_non_null(strstr(page, "<link rel=\"icon\" href=\"data:,\">"));
    assert_non_null(strstr(page, "default-src 'none'"));
    /* The page's own scripts and styles name no server. */
    static const char *const names[] = {"page.css",  "page.js",     "charts.js",  "colors.css",
                                        "tables.js", "timeline.js", "profile.js", "profile.css"};
    struct fixture *f = *state;
    for (int i = 0; i < COUNT_OF(names); i++) {
        struct asset asset;
        assert_int_equal(asset_find(names[i], &f->arena, &asset), ST_OK);
        assert_true(asset.size > 100);
        assert_null(memmem(asset.text, (size_t)asset.size, "://", 3));
    }
}

/* The policy allows exactly the scripts and the style that the page has, by their hashes. */
static void test_policy(void **state)
{
    char *page = page_of(*state);
    char *policy = strstr(page, "Content-Security-Policy"), *end = strchr(policy, '\n');
    struct fixture *f = *state;
    const char *text = arena_printf(&f->arena, "%.*s", (int)(end - policy), policy);
    assert_null(strstr(text, "unsafe"));
    assert_non_null(strstr(text, "default-src 'none'; base-uri 'none'; form-action 'none'; "
                                 "img-src data:; style-src 'sha256-"));
    assert_int_equal(count_of(text, "'sha256-"), 8); /* a style and seven scripts */
    assert_int_equal(count_of(page, "<style"), 1);
    assert_null(strcasestr(page, " onload="));
    assert_true(policy < strstr(page, "<title>")); /* it holds from the first byte of a run on */
}

static void test_unwritable_path(void **state)
{
    struct fixture *f = *state;
    struct comparison c = two_runs(f);
    assert_int_equal(html_write(&(struct html_page){&c, &no_profiles, NULL, 0},
                                fixture_path(f, "nowhere/report.html"), &f->arena),
                     ST_ABSENT);
    assert_non_null(strstr(fail_message(), "nowhere/report.html"));
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_data_cannot_leave_their_element),
        WITH_FIXTURE(test_data_are_the_runs),
        WITH_FIXTURE(test_long_runs_are_thinned),
        WITH_FIXTURE(test_page_is_whole),
        WITH_FIXTURE(test_page_loads_nothing),
        WITH_FIXTURE(test_policy),
        WITH_FIXTURE(test_unwritable_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
