/* Layers of bytes as a picture: each on top of the previous ones. */
#include "present/area.h"
#include "present/markup.h"

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

/* Points of the n-th polygon. */
static int points(int n, double x[], double y[])
{
    const char *at = markup_text(&s);
    for (int i = 0; i <= n; i++) {
        at = strstr(at + (i > 0), "<polygon");
        if (!at) fail_msg("no polygon %d", n);
    }
    char *end;
    int i = 0;
    for (at = strstr(at, "points=\"") + 8; *at != '"'; at = end + 1, i++) {
        x[i] = strtod(at, &end);
        y[i] = strtod(end + 1, &end);
    }
    return i;
}

static const double low[] = {1 << 20, 1 << 20, 1 << 20}, none[] = {0, 0, 0},
                    high[] = {0, 3 << 20, 1 << 20};
static const struct area_layer layers[] = {
    {"a<b", "run-0", low}, {"none", "run-1", none}, {"high", "run-2", high}};
static const struct area_span spans[] = {{"first", 0}, {"then", 2}};
static const char *const words[] = {"x", "y&z", "w"};

static struct area picture(void)
{
    return (struct area){.title = "<t>",
                         .note = "note",
                         .layer = layers,
                         .layers = 3,
                         .columns = 3,
                         .word = words,
                         .span = spans,
                         .spans = 2,
                         .mark = 1,
                         .mark_name = "here",
                         .level = 5 << 20,
                         .level_name = "all"};
}

static void test_layers_stand_on_each_other(void **state)
{
    (void)state;
    struct area a = picture();
    double x[2][16], y[2][16];
    area_print_svg(&a, &s);
    assert_int_equal(count("<polygon"), 2); /* not the layer without bytes */
    assert_int_equal(points(0, x[0], y[0]), 12);
    assert_int_equal(points(1, x[1], y[1]), 12);
    double zero = y[0][11], unit = zero - y[0][0]; /* 1 MiB */
    assert_true(unit > 10);
    for (int i = 0; i < 6; i++) assert_true(fabs(y[0][i] - (zero - unit)) < 0.11);
    const double tops[] = {1, 1, 4, 4, 2, 2};
    for (int i = 0; i < 6; i++) assert_true(fabs(y[1][i] - (zero - tops[i] * unit)) < 0.25);
    for (int i = 6; i < 12; i++) assert_true(fabs(y[1][i] - (zero - unit)) < 0.11);
    for (int i = 0; i < 6; i++) assert_true(x[0][i] == x[1][i] && x[0][i] == x[0][11 - i]);
    assert_true(x[0][1] == x[0][2] && x[0][0] < x[0][1]); /* steps, no slopes */
}

static void test_words(void **state)
{
    (void)state;
    struct area a = picture();
    area_print_svg(&a, &s);
    assert_memory_equal(markup_text(&s), "<svg xmlns=", 11);
    assert_string_equal(markup_text(&s) + markup_bytes(&s) - 7, "</svg>\n");
    assert_int_equal(count("<script"), 0);
    assert_int_equal(count(">first</text>"), 1);
    assert_int_equal(count(">here</text>"), 1);
    assert_int_equal(count(">all</text>"), 1);
    assert_int_equal(count(">5 MiB</text>"), 1); /* a line of the grid */
    assert_int_equal(count(">a&lt;b</text>"), 1);
    assert_int_equal(count(">none</text>"), 0);
    assert_int_equal(count("<title>y&amp;z: 4 MiB\nhigh 3 MiB\na&lt;b 1 MiB</title>"), 1);
    assert_int_equal(count("<title>x: 1 MiB\na&lt;b 1 MiB</title>"), 1);
    markup_release(&s);
    a.level = 1 << 30; /* far away */
    a.mark = -1;
    area_print_svg(&a, &s);
    assert_int_equal(count(">all</text>"), 0);
    assert_int_equal(count(">here</text>"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_layers_stand_on_each_other, release),
        cmocka_unit_test_teardown(test_words, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
