/* Axes, ticks and legends, which all pictures share. */
#include "present/chart.h"
#include "present/markup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct markup s;

static int release(void **state)
{
    (void)state;
    markup_release(&s);
    return 0;
}

static int count(const char *what)
{
    int n = 0;
    for (const char *at = markup_text(&s); (at = strstr(at, what)); at++) n++;
    return n;
}

static void test_places(void **state)
{
    (void)state;
    struct chart_axis a = {CHART_NUMBER, true, 10, 1, 1000, 100, 400};
    assert_float_equal(chart_place(&a, 1), 100, 1e-9);
    assert_float_equal(chart_place(&a, 10), 200, 1e-9);
    assert_float_equal(chart_place(&a, 1000), 400, 1e-9);
    a = (struct chart_axis){CHART_BYTES, false, 2, 0, 8, 400, 0}; /* upwards */
    assert_float_equal(chart_place(&a, 2), 300, 1e-9);
    a = (struct chart_axis){CHART_NUMBER, true, 2, 70, 1000, 0, 1};
    chart_round_out(&a);
    assert_true(a.low == 64 && a.high == 1024);
    a.low = a.high = 64;
    chart_round_out(&a);
    assert_true(a.low == 64 && a.high == 128);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        enum chart_unit unit;
        double value;
        const char *text;
    } cases[] = {{CHART_NUMBER, 65536, "65536"},         {CHART_COUNT, 1e11, "100 G"},
                 {CHART_MILLISECONDS, 0.003, "3 µs"},    {CHART_MILLISECONDS, 40, "40 ms"},
                 {CHART_MILLISECONDS, 1500, "1.5 s"},    {CHART_BYTES, 1000, "1000 B"},
                 {CHART_BYTES, 1023 * 1024, "1023 KiB"}, {CHART_BYTES, 1 << 30, "1 GiB"},
                 {CHART_FLOPS, 4.2e14, "420 TFLOP/s"},   {CHART_FLOPS, 1e15, "1 PFLOP/s"},
                 {CHART_BANDWIDTH, 4e12, "4 TB/s"}};
    char text[32];
    for (int i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(chart_value_text(text, cases[i].unit, cases[i].value), cases[i].text);
}

/* Few ticks for every range, each on its grid line. */
static void test_ticks(void **state)
{
    (void)state;
    struct chart c = {.x = {CHART_NUMBER, true, 2, 64, 65536, 0, 400},
                      .y = {CHART_BYTES, false, 2, 0, 37 << 20, 300, 0}};
    chart_print_x_grid(&c, &s);
    assert_int_equal(count("<path"), 6); /* 10 doublings: each fourth */
    assert_int_equal(count(">64</text>"), 1);
    assert_int_equal(count(">65536</text>"), 1);
    markup_release(&s);
    chart_print_y_grid(&c, &s);
    assert_int_equal(count("<path"), 5);
    assert_int_equal(count(">0 B</text>"), 1);
    assert_int_equal(count(">32 MiB</text>"), 1);
    /* No value from a file causes an endless loop. */
    static const double odd[] = {INFINITY, NAN, 1e308, 0};
    for (int i = 0; i < COUNT_OF(odd); i++) {
        markup_release(&s);
        c.x.high = c.y.high = odd[i];
        chart_print_x_grid(&c, &s);
        chart_print_y_grid(&c, &s);
        assert_true(count("<path") <= 18);
    }
}

static double number_behind(const char *text, const char *attribute)
{
    const char *at = strstr(markup_text(&s), text);
    assert_non_null(at);
    while (memcmp(at, attribute, strlen(attribute)) != 0) at--;
    return strtod(at + strlen(attribute), NULL);
}

static void test_legend(void **state)
{
    (void)state;
    static const struct chart_item item[] = {{"one", "run-0", CHART_LINE, 0},
                                             {"two<", "run-1", CHART_LINE, 2},
                                             {"the third", "memory-saved", CHART_LAYER, 0},
                                             {"four", "family-3", CHART_POINT, 0}};
    struct chart_legend l = {item, COUNT_OF(item), 10, 600};
    double row = chart_legend_height(&l);
    chart_print_legend(&l, 100, &s);
    assert_int_equal(count("var(--run-1)"), 1);
    assert_int_equal(count("chart-dash-2"), 1);
    assert_int_equal(count(">two&lt;</text>"), 1);
    assert_true(number_behind(">one<", " y=\"") == number_behind(">four<", " y=\""));
    markup_release(&s);
    l.width = 260; /* two columns of one width */
    assert_true(chart_legend_height(&l) == 2 * row);
    chart_print_legend(&l, 100, &s);
    assert_true(number_behind(">the third<", " y=\"") == number_behind(">one<", " y=\"") + row);
    assert_true(number_behind(">two&lt;<", " y=\"") == number_behind(">one<", " y=\""));
    l.items = 0;
    assert_true(chart_legend_height(&l) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_values),
        cmocka_unit_test_teardown(test_ticks, release),
        cmocka_unit_test_teardown(test_legend, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
