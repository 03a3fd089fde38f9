/* A sheet that is written and read back is unchanged; invalid parts are refused or left out. */
#include "present/markup.h"
#include "present/sheet.h"

#include "../support/hand.h"
#include "../support/program.h"
#include "../support/workdir.h"
#include "base/str.h"
#include "base/visible.h"
#include "present/table_cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static const struct table_column columns[] = {
    {"way", "way", "slow or flash", false},
    {"T", "T", "tokens", true},
    {"mean_ms", "mean ms", "of a call", true},
    {"note", "note", "why not", false},
};

static struct sheet sheet(void)
{
    struct sheet s = {.name = "bench",
                      .title = "A <title>",
                      .date = "2026-11-21T00:00:00Z",
                      .commit = "cced13a0b1f2",
                      .command = "strobe bench 'a b.conf'"};
    struct sheet_table *t = &s.table[0];
    t = sheet_add(&s, NULL, columns, COUNT_OF(columns), 4, &arena);
    for (int i = 0; i < 4; i++) {
        table_set_text(&t->table, i, 0, i % 2 ? "flash" : "slow, \"old\"");
        table_set(&t->table, i, 1, 0, i < 2 ? 64 : 128, &arena);
        if (i < 3) table_set(&t->table, i, 2, 3, 1.25 * (i + 1), &arena);
    }
    table_set_text(&t->table, 3, 3, "needs 2.0 GiB");
    t->chart = (struct sheet_chart){
        .kind = SHEET_LINES, .label = {"way"}, .labels = 1, .x = "T", .y = "mean_ms"};
    sheet_note(&s, "A note.");
    return s;
}

static const char *printed(const struct sheet *s, void (*print)(const struct table *, struct str *))
{
    struct str out = {0};
    sheet_print(s, print, visible_append, &out);
    const char *text = arena_strdup(&arena, str_text(&out));
    str_release(&out);
    return text;
}

/* A table that is only drawn: its rows are in the file and in CSV, and text names how many. */
static void test_drawn_only(void **state)
{
    (void)state;
    struct sheet s = sheet(), read;
    s.table[0].drawn_only = s.table[0].chart.linear = true;
    s.table[0].title = "Each step";
    const char *path = workdir_path("drawn.json");
    hand_ok(sheet_write(&s, path));
    hand_ok(sheet_read(path, &arena, &read));
    assert_true(read.table[0].drawn_only && read.table[0].chart.linear);
    const char *text = printed(&read, table_print_text);
    assert_non_null(strstr(text, "Each step: 4 rows, in the file of the result"));
    assert_null(strstr(text, "flash"));
    struct str csv = {0};
    sheet_print(&read, table_print_csv, NULL, &csv);
    assert_non_null(strstr(str_text(&csv), "flash"));
    str_release(&csv);
}

/* NaN gives neither a number nor text. */
static void test_no_number_is_an_empty_cell(void **state)
{
    (void)state;
    struct sheet s = sheet();
    struct table *t = &s.table[0].table;
    const double none[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < COUNT_OF(none); i++) {
        table_set(t, 3, 2, 3, none[i], &arena);
        assert_null(table_at(t, 3, 2)->text);
        table_set_count(t, 3, 2, none[i], &arena);
        assert_null(table_at(t, 3, 2)->text);
    }
}

static void test_written_and_read(void **state)
{
    (void)state;
    struct sheet s = sheet(), back;
    const char *path = workdir_path("deep/er/bench.json");
    hand_ok(sheet_write(&s, path));
    bool is = false;
    hand_ok(sheet_is(path, &is));
    assert_true(is);
    hand_ok(sheet_read(path, &arena, &back));
    assert_string_equal(printed(&s, table_print_text), printed(&back, table_print_text));
    assert_string_equal(printed(&s, table_print_csv), printed(&back, table_print_csv));
    json_t *a = sheet_json(&s), *b = sheet_json(&back);
    assert_true(json_equal(a, b));
    json_decref(a);
    json_decref(b);
    assert_string_equal(back.path, path);
    assert_string_equal(back.commit, s.commit);
    assert_string_equal(back.command, s.command);
}

static void test_curves(void **state)
{
    (void)state;
    struct sheet s = sheet();
    struct markup out = {0};
    sheet_print_curves(&s.table[0], &out, &arena);
    assert_non_null(strstr(markup_text(&out), "slow, &quot;old&quot;, 64: 1.25 ms"));
    assert_non_null(strstr(markup_text(&out), "slow, &quot;old&quot;, 128: 3.75 ms"));
    assert_null(strstr(markup_text(&out), "flash, 128")); /* not run */
    markup_release(&out);
    s.table[0].chart.panel = "T";
    sheet_print_curves(&s.table[0], &out, &arena);
    assert_non_null(strstr(markup_text(&out), ">T 64<"));
    assert_non_null(strstr(markup_text(&out), ">T 128<"));
    markup_release(&out);
}

/* Of several labels the first gives a bar its color, in every group the same. */
static void test_colors_of_bars(void **state)
{
    (void)state;
    struct sheet s = {.name = "bench"};
    struct markup out = {0};
    struct sheet_table *t = sheet_add(&s, NULL, columns, COUNT_OF(columns), 4, &arena);
    for (int i = 0; i < 4; i++) {
        table_set_text(&t->table, i, 0, i % 2 ? "flash" : "slow");
        table_set(&t->table, i, 1, 0, i, &arena);
        table_set(&t->table, i, 2, 3, 1 + i, &arena);
    }
    t->chart = (struct sheet_chart){
        .kind = SHEET_BARS, .title = "bars", .label = {"way", "T"}, .labels = 2, .y = "mean_ms"};
    sheet_print_bars(t, &out, &arena);
    const char *at = markup_text(&out);
    for (int i = 0; i < 4; i++) {
        at = strstr(at, "--c: var(--run-");
        assert_non_null(at);
        at += strlen("--c: var(--run-");
        assert_int_equal(*at - '0', i % 2);
    }
    markup_release(&out);
}

/* As many curves as can be told apart; the others are counted. */
static void test_many_curves(void **state)
{
    (void)state;
    struct sheet s = {.name = "bench"};
    struct sheet_table *t = sheet_add(&s, NULL, columns, COUNT_OF(columns), 30, &arena);
    for (int i = 0; i < 30; i++) {
        table_set_text(&t->table, i, 0, arena_printf(&arena, "way %d", i));
        table_set(&t->table, i, 1, 0, 64, &arena);
        table_set(&t->table, i, 2, 3, 1 + i, &arena);
    }
    t->chart = (struct sheet_chart){
        .kind = SHEET_LINES, .label = {"way"}, .labels = 1, .x = "T", .y = "mean_ms"};
    struct markup out = {0};
    sheet_print_curves(t, &out, &arena);
    const char *text = markup_text(&out);
    for (int i = 0; i < 28; i++) {
        const char *line = arena_printf(&arena,
                                        "<g style=\"--c:var(--run-%d)\">\n<polyline "
                                        "class=\"chart-line chart-dash-%d\"",
                                        i % 7, i / 7);
        const char *at = strstr(text, line);
        if (!at || strstr(at + 1, line)) fail_msg("not one line as that of way %d", i);
    }
    assert_non_null(strstr(text, "way 27, 64"));
    assert_null(strstr(text, "way 28, 64"));
    assert_non_null(strstr(text, ">2 of 30 rows are not drawn, only in the table.<"));
    markup_release(&out);
}

static void refused(const char *text, const char *sentence)
{
    struct sheet s;
    assert_int_equal(sheet_read(workdir_text("bad.json", text), &arena, &s), ST_FORMAT);
    if (!strstr(fail_message(), sentence)) fail_msg("%s", fail_message());
}

static void test_invalid_sheets(void **state)
{
    (void)state;
    struct sheet s;
    refused("{\"v\":2,\"kind\":\"bench\",\"tables\":[]}", "of version 2");
    refused("{\"v\":1,\"kind\":\"bench\"}", "it has no tables");
    refused("no json", "it has no tables");
    refused("{\"v\":1,\"kind\":\"bench\",\"tables\":[{}]}", "a table of 0 columns");
    bool is = true;
    hand_ok(sheet_is(workdir_text("other.json", "{\"v\":1,\"rows\":[]}"), &is));
    assert_false(is);
    assert_int_equal(sheet_is(workdir_text("cut.json", "{\"v\":1,"), &is), ST_FORMAT);
    /* A chart of missing columns is left out; missing cells are empty. */
    hand_ok(sheet_read(workdir_text("odd.json",
                                    "{\"v\":1,\"kind\":\"bench\",\"tables\":[{\"columns\":[{\"id\":"
                                    "\"a\",\"is_number\":true}],\"rows\":[{},{\"a\":1}],\"shown\":["
                                    "[],[\"1\"]],\"chart\":{\"kind\":\"bars\",\"y\":\"b\"}}]}"),
                       &arena, &s));
    assert_true(s.table[0].chart.kind == SHEET_NO_CHART && s.table[0].table.rows == 2);
    assert_null(table_at(&s.table[0].table, 0, 0)->text);
    assert_true(table_at(&s.table[0].table, 1, 0)->number == 1);
}

/* What cannot be read is neither absent nor damaged. */
static void test_unreadable(void **state)
{
    (void)state;
    struct sheet s;
    bool is = true;
    const char *path = workdir_path("loop.json");
    assert_int_equal(symlink("loop.json", path), 0);
    assert_int_equal(sheet_is(path, &is), ST_FORMAT);
    assert_false(is);
    assert_int_equal(sheet_read(path, &arena, &s), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "symbolic links"));
}

/* A file of `columns` x `rows` cells; those of the first column have texts. */
static const char *large(int columns_n, int rows)
{
    struct str s = {0};
    str_append(&s, "{\"v\":1,\"kind\":\"bench\",\"tables\":[{\"columns\":[{\"id\":\"a\"}");
    for (int c = 1; c < columns_n; c++) str_append(&s, ",{\"id\":\"x\",\"is_number\":true}");
    str_append(&s, "],\"rows\":[{\"x\":1}");
    for (int i = 1; i < rows; i++) str_append(&s, ",{\"x\":2}");
    str_append(&s, "],\"shown\":[[\"a\"]");
    for (int i = 1; i < rows; i++) str_append(&s, i % 2 ? ",[\"b\",\"1\"]" : ",[\"c\",\"2\"]");
    str_append(&s,
               "],\"chart\":{\"kind\":\"lines\",\"x\":\"x\",\"y\":\"x\",\"labels\":[\"a\"]}}]}");
    const char *path = workdir_text("large.json", str_text(&s));
    str_release(&s);
    return path;
}

/* Work that grows with the square of the rows would take hours. */
static void test_many_rows(void **state)
{
    (void)state;
    struct sheet s;
    struct markup curves = {0};
    hand_ok(sheet_read(large(2, 100000), &arena, &s));
    assert_true(strlen(printed(&s, table_print_text)) > 500000);
    assert_true(strlen(printed(&s, table_print_markdown)) > 900000);
    sheet_print_curves(&s.table[0], &curves, &arena);
    assert_non_null(strstr(markup_text(&curves), "<title>b, 2: "));
    markup_release(&curves);
    assert_int_equal(sheet_read(large(11, 100000), &arena, &s), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "a table of 11 columns and 100000 rows"));
}

/* One long cell does not fill every row with blanks. */
static void test_one_long_cell(void **state)
{
    (void)state;
    struct sheet s = {0};
    enum { ROWS = 1000, BYTES = 100000 };
    struct table *t = &sheet_add(&s, NULL, columns, 2, ROWS, &arena)->table;
    char *word = arena_alloc(&arena, BYTES + 1);
    memset(word, 'w', BYTES);
    word[BYTES] = '\0';
    for (int i = 0; i < ROWS; i++) {
        table_set_text(t, i, 0, i ? "a" : word);
        table_set(t, i, 1, 0, i, &arena);
    }
    assert_true(strlen(printed(&s, table_print_text)) < 4 * BYTES);
}

/* The requested number of digits of the displayed number. */
static void test_digits(void **state)
{
    (void)state;
    static const struct {
        double x;
        int digits;
        const char *shown;
    } all[] = {{0.9996, 3, "1.00"},   {0.99949, 3, "0.999"}, {9.996, 3, "10.0"},
               {99.94, 3, "99.9"},    {99.96, 3, "100"},     {0.0996, 2, "0.10"},
               {-0.9996, 3, "-1.00"}, {1234.5, 3, "1234"},   {1, 3, "1"},
               {0, 3, "0"},           {0.05, 2, "0.050"}};
    static const struct table_column column = {"x", "x", "a number", true};
    for (int i = 0; i < COUNT_OF(all); i++) {
        struct sheet s = {0};
        struct table *t = &sheet_add(&s, NULL, &column, 1, 1, &arena)->table;
        table_set(t, 0, 0, all[i].digits, all[i].x, &arena);
        assert_string_equal(table_at(t, 0, 0)->text, all[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_only),       cmocka_unit_test(test_no_number_is_an_empty_cell),
        cmocka_unit_test(test_written_and_read), cmocka_unit_test(test_curves),
        cmocka_unit_test(test_colors_of_bars),   cmocka_unit_test(test_many_curves),
        cmocka_unit_test(test_invalid_sheets),   cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_many_rows),        cmocka_unit_test(test_one_long_cell),
        cmocka_unit_test(test_digits),
    };
    return cmocka_run_group_tests(tests, program_setup, program_teardown);
}
