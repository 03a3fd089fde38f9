/* Plots: points at logarithmic coordinates, and escaped text. */
#include "present/markup.h"
#include "present/plot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
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

/* The number after the n-th `name="`. */
static double attribute(const char *element, const char *name, int n)
{
    const char *at = markup_text(&s);
    char words[32];
    snprintf(words, sizeof words, " %s=\"", name);
    for (int i = 0; i <= n; i++) {
        at = strstr(at + (i > 0), element);
        if (!at) fail_msg("no %s number %d", element, n);
    }
    at = strstr(at, words);
    assert_non_null(at);
    return strtod(at + strlen(words), NULL);
}

static double level_y(void)
{
    double x, y;
    const char *at = strstr(markup_text(&s), "<path class=\"chart-level\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "<path class=\"chart-level\" d=\"M%lf %lfH", &x, &y), 2);
    return y;
}

static void test_points_lie_on_logarithms(void **state)
{
    (void)state;
    const struct plot_point time[] = {{64, 1, false}, {256, 10, false}, {1024, 1000, true}};
    const struct plot_line line = {"slow", 2, 1, time, 3};
    const struct plot_panel panel = {
        .title = "time", .x_title = "T", .unit = CHART_MILLISECONDS, .line = &line, .lines = 1};
    plot_print_svg("Attention", "a note", &panel, 1, &s);
    assert_memory_equal(markup_text(&s), "<svg xmlns=", 11);
    assert_string_equal(markup_text(&s) + markup_bytes(&s) - 7, "</svg>\n");
    assert_int_equal(count("<circle"), 3);
    assert_int_equal(count("class=\"chart-dot chart-hollow\""), 1);
    assert_int_equal(count("chart-line chart-dash-1\""), 2); /* the curve and the legend */
    double x0 = attribute("<circle", "cx", 0), x1 = attribute("<circle", "cx", 1);
    double x2 = attribute("<circle", "cx", 2), y0 = attribute("<circle", "cy", 0);
    double y1 = attribute("<circle", "cy", 1), y2 = attribute("<circle", "cy", 2);
    assert_true(x0 < x1 && fabs((x2 - x1) - (x1 - x0)) < 0.2);     /* 4 x each */
    assert_true(y0 > y1 && fabs((y1 - y2) - 2 * (y0 - y1)) < 0.2); /* 10 x, 100 x */
    assert_int_equal(count("slow, 1024: 1 s (not run)</title>"), 1);
    assert_int_equal(count("slow, 64: 1 ms</title>"), 1);
    assert_int_equal(count(">100 ms</text>"), 1); /* a line of the grid */
    assert_int_equal(count("<g style=\"--c:var(--run-2)\">"), 2);
    assert_int_equal(count("--run-2: light-dark("), 1); /* the file defines its colors */
}

static void test_rates_and_long_names(void **state)
{
    (void)state;
    const struct plot_point rate[] = {{64, 2e10, false}, {128, 4.2e14, false}};
    const struct plot_line line[] = {
        {"a name that is as long as those of flash attention are", 0, 0, rate, 2},
        {"short", 1, 0, rate, 2}};
    const struct plot_panel panel = {
        .title = "rate", .x_title = "T", .unit = CHART_FLOPS, .line = line, .lines = 2};
    plot_print_svg("rates", "", &panel, 1, &s);
    assert_int_equal(count("short, 64: 20 GFLOP/s</title>"), 1);
    assert_int_equal(count("short, 128: 420 TFLOP/s</title>"), 1);
    assert_int_equal(count(">1 TFLOP/s</text>"), 1); /* a line of the grid */
    /* two names do not fit in one line: both begin at the same column */
    const char *at = strstr(markup_text(&s), " attention are</text>");
    const char *other = strstr(markup_text(&s), ">short</text>");
    assert_non_null(at);
    assert_non_null(other);
    while (memcmp(at, " x=\"", 4) != 0) at--;
    while (memcmp(other, " x=\"", 4) != 0) other--;
    assert_true(strtod(at + 4, NULL) == strtod(other + 4, NULL));
}

/* A value that a logarithmic axis cannot show is a mark at the edge; NaN is left out. */
static void test_values_outside_are_marked(void **state)
{
    (void)state;
    const struct plot_point odd[] = {{64, 0, false}, {128, NAN, false}, {0, 1, false}};
    const struct plot_line line = {"none", 0, 0, odd, 3};
    const struct plot_panel panel = {
        .title = "bytes", .x_title = "T", .unit = CHART_BYTES, .line = &line, .lines = 1};
    plot_print_svg("empty", "", &panel, 1, &s);
    assert_int_equal(count("<circle"), 0);
    assert_int_equal(count("<path class=\"chart-outside\" d=\"M86.0 346.0l-4 -7h8z\""), 1);
    assert_int_equal(count("none, 64: 0 B, outside the chart</title>"), 1);
    assert_int_equal(count("nan"), 0);
    assert_int_equal(count("inf"), 0);
}

static void test_a_level_is_drawn_where_it_matters(void **state)
{
    (void)state;
    const struct plot_point bytes[] = {{64, 1 << 20, false}, {128, 1 << 22, false}};
    const struct plot_line line = {"memory", 1, 0, bytes, 2};
    struct plot_panel panel = {.title = "bytes",
                               .x_title = "T",
                               .unit = CHART_BYTES,
                               .line = &line,
                               .lines = 1,
                               .level = 1 << 24,
                               .level_name = "free memory"};
    plot_print_svg("near", "", &panel, 1, &s);
    assert_int_equal(count(">free memory</text>"), 1);
    assert_true(level_y() < attribute("<circle", "cy", 1));
    assert_int_equal(count(">4 MiB</text>"), 1);
    markup_release(&s);
    panel.level = 1e15;
    plot_print_svg("far", "", &panel, 1, &s);
    assert_int_equal(count("free memory"), 0);
}

static void test_text_is_escaped(void **state)
{
    (void)state;
    const struct plot_point p[] = {{1, 1, false}};
    const struct plot_line line = {"a<b&c", 0, 0, p, 1};
    const struct plot_panel panel = {
        .title = "<x>", .x_title = "&", .unit = CHART_MILLISECONDS, .line = &line, .lines = 1};
    plot_print_svg("</title><script>", "<!--", &panel, 1, &s);
    assert_int_equal(count("<script"), 0);
    assert_int_equal(count("<!--"), 0);
    assert_int_equal(count("a&lt;b&amp;c"), 2);
    assert_int_equal(count("&lt;/title&gt;&lt;script&gt;"), 2);
}

/* A linear x begins at 0, and a point there is drawn. */
static void test_a_linear_x(void **state)
{
    (void)state;
    const struct plot_point time[] = {{0, 100, false}, {1, 10, false}, {10, 10, false}};
    const struct plot_line line = {"step", 0, 0, time, 3};
    const struct plot_panel panel = {.title = "time",
                                     .x_title = "step",
                                     .unit = CHART_MILLISECONDS,
                                     .linear_x = true,
                                     .line = &line,
                                     .lines = 1};
    plot_print_svg("Steps", "", &panel, 1, &s);
    assert_int_equal(count("<circle"), 3);
    double x0 = attribute("<circle", "cx", 0), x1 = attribute("<circle", "cx", 1);
    assert_true(fabs(attribute("<circle", "cx", 2) - x0 - 10 * (x1 - x0)) < 1);
    assert_int_equal(count("step, 0: 100 ms</title>"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_points_lie_on_logarithms, release),
        cmocka_unit_test_teardown(test_rates_and_long_names, release),
        cmocka_unit_test_teardown(test_values_outside_are_marked, release),
        cmocka_unit_test_teardown(test_a_level_is_drawn_where_it_matters, release),
        cmocka_unit_test_teardown(test_a_linear_x, release),
        cmocka_unit_test_teardown(test_text_is_escaped, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
