/* Run directories and profiles that somebody made to harm: numbers out of every range, wrong types,
 * bytes that are no text. A report of them is an error in words or a report, never undefined
 * behavior (MODE=asan runs this). */
#include "../support/profile_text.h"
#include "../support/run_fixture.h"
#include "base/str.h"
#include "base/utf8.h"
#include "report/html.h"
#include "report/report.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Reads, prints in every form and writes page and pictures. */
static enum status report_all(struct fixture *f, char **words, int n)
{
    struct report r;
    enum status st = report_read(&r, words, n, &f->arena);
    if (st != ST_OK) return st;
    static const enum report_form forms[] = {REPORT_TEXT, REPORT_MARKDOWN, REPORT_JSON, REPORT_CSV};
    for (int i = 0; i < COUNT_OF(forms); i++) {
        struct str s = {0};
        bool has_tables = r.runs.runs || r.of.sheets;
        enum status printed = report_print(&r, forms[i], &s, &f->arena);
        assert_int_equal(printed, forms[i] != REPORT_CSV || has_tables ? ST_OK : ST_USAGE);
        assert_true(s.len > 0 || printed != ST_OK);
        if (forms[i] == REPORT_JSON) {
            json_t *j = json_loads(str_text(&s), 0, NULL);
            assert_non_null(j);
            json_decref(j);
        } else {
            assert_true(utf8_is(str_text(&s)));
            assert_null(strpbrk(str_text(&s), "\x1b\r\x07"));
        }
        str_release(&s);
    }
    assert_int_equal(report_write_page(&r, fixture_path(f, "page.html"), &f->arena), ST_OK);
    if (r.of.profiles.n) assert_int_equal(report_write_svg(&r, fixture_path(f, "roof.svg")), ST_OK);
    return ST_OK;
}

static const char *const numbers[] = {"9223372036854775807",
                                      "-9223372036854775808",
                                      "1e300",
                                      "-1e300",
                                      "1.7e308",
                                      "-1",
                                      "0",
                                      "4e18",
                                      "5e-324",
                                      "2147483648",
                                      "0.5",
                                      "NaN",
                                      "Infinity",
                                      "null",
                                      "\"12\"",
                                      "[1]",
                                      "{}",
                                      "true"};

/* Extreme iterations are refused in words; a line whose iteration is text or null is ignored. */
static void test_iterations(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < COUNT_OF(numbers); i++)
        for (int kind = 0; kind < 3; kind++) {
            static const char *const kinds[] = {"step", "eval", "sample"};
            char text[512];
            snprintf(text, sizeof text,
                     "{\"v\":1,\"kind\":\"step\",\"iter\":1,\"loss\":2,\"ms\":3}\n"
                     "{\"v\":1,\"kind\":\"%s\",\"iter\":%s,\"loss\":2,\"ms\":3}\n"
                     "{\"v\":1,\"kind\":\"step\",\"iter\":2,\"loss\":2,\"ms\":3}\n",
                     kinds[kind], numbers[i]);
            fixture_write(f, "a/log.jsonl", text);
            char *dir = fixture_path(f, "a");
            enum status st = report_all(f, &dir, 1);
            if (i < 6 || !strcmp(numbers[i], "4e18") || !strcmp(numbers[i], "5e-324") ||
                !strcmp(numbers[i], "0.5")) {
                assert_int_equal(st, ST_FORMAT);
                assert_non_null(strstr(fail_message(), "log.jsonl line 2 has iteration "));
            } else
                assert_int_equal(st, ST_OK);
        }
}

/* Each number of a run in turn, in its log and in its other files. */
static void test_numbers_of_a_run(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        const char *x = numbers[i];
        char text[2048];
        snprintf(text, sizeof text,
                 "{\"v\":1,\"kind\":\"step\",\"iter\":1,\"loss\":%s,\"ms\":%s,\"lr\":%s,"
                 "\"tokens_per_s\":%s}\n"
                 "{\"v\":1,\"kind\":\"sample\",\"iter\":1,\"ms\":%s,\"steady\":true,"
                 "\"utilization\":%s,\"clock_mhz\":%s,\"power_w\":%s,\"memory_bytes\":%s,"
                 "\"throttled\":%s,\"clock_max_mhz\":%s}\n"
                 "{\"v\":1,\"kind\":\"sample\",\"iter\":2,\"ms\":1.7e308}\n"
                 "{\"v\":1,\"kind\":\"sample\",\"iter\":2,\"ms\":1.7e308}\n"
                 "{\"v\":1,\"kind\":\"eval\",\"iter\":2,\"train_loss\":%s,\"val_loss\":%s}\n"
                 "{\"v\":1,\"kind\":\"step\",\"iter\":9007199254740992,\"loss\":1,\"ms\":1e300}\n",
                 x, x, x, x, x, x, x, x, x, x, x, x, x);
        fixture_write(f, "a/log.jsonl", text);
        snprintf(text, sizeof text,
                 "{\"v\":1,\"iters\":%s,\"seconds\":%s,\"ms_median\":%s,\"ms_std\":%s,"
                 "\"tokens_per_s\":%s,\"final_val_loss\":%s,\"best_val_loss\":%s,\"peak_rss\":%s,"
                 "\"others_busy\":%s,\"gauges\":{\"throttled\":%s,\"joules_per_token\":%s,"
                 "\"throttled_by\":{\"\\u001b\":%s},\"clock_mhz\":{\"mean\":%s}}}",
                 x, x, x, x, x, x, x, x, x, x, x, x, x);
        fixture_write(f, "a/summary.json", text);
        snprintf(text, sizeof text,
                 "{\"v\":1,\"parameters\":%s,\"tokens_per_step\":%s,\"kernels_per_step\":%s,"
                 "\"flops_per_step\":%s,\"memory\":{\"weights\":%s,\"total\":%s}}",
                 x, x, x, x, x, x);
        fixture_write(f, "a/plan.json", text);
        snprintf(text, sizeof text, "{\"a\":{\"b\":{\"c\":%s}},\"cpu\":%s,\"\\u202e\":%s}", x, x,
                 x);
        fixture_write(f, "a/env.json", text);
        fixture_write(f, "a/config.conf", "dataset = \x1b[2J\xff\x9b\n=\n=x\n\x1b =\r\n");
        fixture_run(f, "b", "true", 20, 6000, 3.24);
        char *words[] = {fixture_path(f, "a"), fixture_path(f, "b")};
        assert_int_equal(report_all(f, words, 2), ST_OK);
        char *turned[] = {words[1], words[0]};
        assert_int_equal(report_all(f, turned, 2), ST_OK);
    }
}

static void test_numbers_of_a_profile(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        const char *x = numbers[i];
        struct str s = {0};
        str_printf(
            &s,
            "{\"v\":1,\"threads\":%s,\"steps\":%s,\"step_ms\":{\"n\":%s,\"mean\":%s},\"dropped\":%"
            "s,"
            "\"plain_step_ms\":{\"median\":%s},\"overhead\":%s,\"others_busy\":%s,"
            "\"plan\":{\"parameters\":%s},\"config\":{\"n_layer\":%s,\"n_head\":%s},"
            "\"idle\":{\"ms_per_step\":%s,\"gaps_per_step\":%s,\"phases\":{\"forward\":%s}},"
            "\"phase_ms\":{\"forward\":%s,\"b\":%s},\"words\":[%s,{\"about\":%s,\"text\":%s}],"
            "\"machine\":{\"l2_bytes\":%s,\"products\":[%s,{\"dtype\":\"f32\",\"flops_per_s\":%s}],"
            "\"copies\":[{\"bytes_per_thread\":%s,\"bytes_per_s\":%s},{\"bytes_per_thread\":1,"
            "\"bytes_per_s\":%s}]},\"rows\":[%s,",
            x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x);
        for (int row = 0; row < 3; row++)
            str_printf(&s,
                       "{\"op\":\"MATMUL\",\"family\":%s,\"layer\":%s,\"flops\":%s,\"bytes\":%s,"
                       "\"floor_ms\":%s,\"per_step\":%s,\"ms_per_step\":%s,\"work_ms_per_step\":%s,"
                       "\"std_per_step\":%s,\"range\":[%s,\"a\"],\"bound\":%s,"
                       "\"run_ms\":{\"n\":%s,\"mean\":%s}},",
                       x, x, row ? x : "1e9", row ? x : "1e6", x, x, row ? x : "2", x, x, x, x, x,
                       x);
        str_printf(&s,
                   "{\"op\":\"B\"}],\"timeline\":{\"moments\":[[0,%s,%s,0],[%s,0,1,%s],%s,"
                   "[1,-1.7e308,1.7e308,0]]},\"memory\":{\"parts\":[\"weights\",\"x); y\",%s],"
                   "\"peak\":%s,\"total_bytes\":%s,\"moments\":[[%s,%s,%s],[1,1e300],%s]}}",
                   x, x, x, x, x, x, x, x, x, x, x, x);
        fixture_write(f, "a/profile.json", str_text(&s));
        str_release(&s);
        fixture_write(f, "b/profile.json", profile_text(profile_slow, &f->arena));
        char *words[] = {fixture_path(f, "a"), fixture_path(f, "b")},
             *turned[] = {words[1], words[0]};
        if (report_all(f, words, 2) != ST_OK) fail_msg("%s: %s", x, fail_message());
        assert_int_equal(report_all(f, turned, 2), ST_OK);
        assert_int_equal(report_all(f, words, 1), ST_OK);
    }
}

/* Names are cut between characters, and paths that are not UTF-8 are reported on as well. */
static void test_texts_that_are_no_text(void **state)
{
    struct fixture *f = *state;
    struct str s = {0};
    str_append(&s,
               "{\"v\":1,\"machine\":{\"products\":[{\"dtype\":\"xxxxxxxxxxxxxxxxxxx\xe2\x82\xac\","
               "\"flops_per_s\":1e12}]},\"rows\":[");
    for (int row = 0; row < 4; row++) {
        str_printf(&s, "%s{\"op\":\"", row ? "," : "");
        for (int i = 0; i < 71 + row; i++) str_append(&s, "n");
        str_append(&s, "\xe2\x82\xac\",\"device_kernel\":\"");
        for (int i = 0; i < 45 + row; i++) str_append(&s, "k");
        str_append(&s, "\xe2\x82\xac\xe2\x82\xac\",\"flops\":1e9,\"bytes\":1e6,\"per_step\":1,"
                       "\"ms_per_step\":2}");
    }
    str_append(&s, "]}");
    fixture_write(f, "\xff\xfe/profile.json", str_text(&s));
    str_release(&s);
    fixture_write(f, "\xff\xfd/log.jsonl",
                  "{\"v\":1,\"kind\":\"step\",\"iter\":1,\"loss\":2,\"ms\":3}\n");
    char *words[] = {fixture_path(f, "\xff\xfe"), fixture_path(f, "\xff\xfd")};
    assert_int_equal(report_all(f, words, 2), ST_OK);
    struct report r;
    assert_int_equal(report_read(&r, words, 2, &f->arena), ST_OK);
    for (int i = 0; i < r.of.profiles.profile[0].kernels; i++)
        assert_true(utf8_is(r.of.profiles.profile[0].kernel[i].name));
    struct html_page page = {&r.runs, &r.of.profiles, NULL, 0};
    json_t *data = html_data(&page, &f->arena);
    assert_int_equal(json_array_size(json_object_get(data, "words")), 2);
    json_t *profile = json_array_get(json_object_get(data, "profiles"), 0);
    json_t *kernels = json_object_get(profile, "kernels");
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(json_string_value(json_array_get(kernels, i)),
                            r.of.profiles.profile[0].kernel[i].name);
    json_decref(data);
}

static void test_too_many_rows(void **state)
{
    struct fixture *f = *state;
    struct str s = {0};
    str_append(&s, "{\"v\":1,\"rows\":[1");
    for (int i = 0; i < 1 << 16; i++) str_append(&s, ",1");
    str_append(&s, "]}");
    fixture_write(f, "a/profile.json", str_text(&s));
    str_release(&s);
    char *dir = fixture_path(f, "a");
    assert_int_equal(report_all(f, &dir, 1), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "has 65537 rows, more than any step has"));
}

/* A result that cannot be read is not left out of a report that then succeeds. */
static void test_a_result_that_cannot_be_read(void **state)
{
    struct fixture *f = *state;
    fixture_run(f, "all/a", "true", 20, 6000, 3.24);
    char *dir = fixture_path(f, "all/a"), *folder = fixture_path(f, "all");
    char *bench = fixture_path(f, "all/a/bench.json");
    fixture_write(f, "all/a/bench.json", "{\"of\":\"another program\"}");
    assert_int_equal(report_all(f, &dir, 1), ST_OK);
    fixture_write(f, "all/a/bench.json", "{\"v\":1,\"kind\":\"bench\",");
    assert_int_equal(report_all(f, &dir, 1), ST_FORMAT);
    assert_int_equal(report_all(f, &folder, 1), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "all/a/bench.json is not valid JSON"));
    unlink(bench);
    assert_int_equal(symlink("bench.json", bench), 0);
    char *const words[] = {dir, folder, bench};
    for (int i = 0; i < COUNT_OF(words); i++) {
        char *word = words[i];
        bool named = word == bench;
        assert_int_equal(report_all(f, &word, 1), named ? ST_FORMAT : ST_USAGE);
        assert_non_null(strstr(fail_message(), named
                                                   ? "bench.json: Too many levels of symbolic links"
                                                   : "bench.json is a symbolic link"));
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_iterations),           WITH_FIXTURE(test_numbers_of_a_run),
        WITH_FIXTURE(test_numbers_of_a_profile), WITH_FIXTURE(test_texts_that_are_no_text),
        WITH_FIXTURE(test_too_many_rows),        WITH_FIXTURE(test_a_result_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
