/* Cells come from files and names: none controls a terminal, and none is a formula. */
#include "base/str.h"
#include "present/table_cells.h"

#include "base/arena.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct str s;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    str_release(&s);
    return 0;
}

static const struct table_column columns[] = {{"name", "na\x1bme", "", false},
                                              {"n", "n", "", true}};

static struct table table_of(const char *const *text, int rows)
{
    struct table t = table_new(columns, COUNT_OF(columns), rows, &arena);
    for (int i = 0; i < rows; i++) {
        table_set_text(&t, i, 0, text[i]);
        table_set(&t, i, 1, 3, -1 - i, &arena);
    }
    return t;
}

static void test_cells_are_shown(void **state)
{
    (void)state;
    static const char *const text[] = {"a\n\x1b[2Jb",
                                       ("\xe2\x80\xae"
                                        "c\xff"),
                                       "\xc3\xa4|"};
    struct table t = table_of(text, COUNT_OF(text));
    table_print_text(&t, &s);
    assert_string_equal(str_text(&s), "na\\x1bme      n\n"
                                      "a\\n\\x1b[2Jb  -1\n"
                                      "U+202Ec\\xff  -2\n"
                                      "\xc3\xa4|           -3\n");
    str_release(&s);
    table_print_markdown(&t, &s);
    assert_string_equal(str_text(&s), "| na\\\\x1bme | n |\n|---|---:|\n"
                                      "| a \\\\x1b\\[2Jb | -1 |\n"
                                      "| U+202Ec\\\\xff | -2 |\n"
                                      "| \xc3\xa4\\| | -3 |\n");
}

static void test_text_is_not_markdown(void **state)
{
    (void)state;
    static const char *const text[][2] = {
        {"<img src=x>", "\\<img src=x>"},
        {"![](https://x) &lt;", "!\\[](https://x) \\&lt;"},
        {"a\n# forged", "a # forged"},
        {"# forged", "\\# forged"},
        {" > a # b", " \\> a # b"},
        {"~~~", "\\~~~"},
        {"`a` | b_c*", "\\`a\\` \\| b\\_c\\*"},
    };
    for (int i = 0; i < COUNT_OF(text); i++) {
        str_release(&s);
        table_markdown_text(&s, text[i][0]);
        assert_string_equal(str_text(&s), text[i][1]);
    }
}

/* A number that a row does not have is empty, even if text has a word for it. */
static void test_a_word_in_place_of_a_number(void **state)
{
    (void)state;
    static const char *const text[] = {"a", "b"};
    struct table t = table_of(text, COUNT_OF(text));
    *table_at(&t, 1, 1) = (struct table_cell){"same plan", NAN};
    table_print_csv(&t, &s);
    assert_string_equal(str_text(&s), "name,n\na,-1\nb,\n");
}

static void test_no_cell_is_a_formula(void **state)
{
    (void)state;
    static const char *const text[] = {
        "=1+1",  "+cmd|' /C calc'!A0",
        "-2+3",  "@SUM(A1)",
        "\t=1",  "\r=1",
        "\n=1",  "=a,\"b\"",
        "-0.25", "+1e-3",
        "-",     "a=b",
        "'=1",   "1-2",
        "",
    };
    struct table t = table_of(text, COUNT_OF(text));
    table_print_csv(&t, &s);
    assert_string_equal(str_text(&s), "name,n\n"
                                      "'=1+1,-1\n"
                                      "'+cmd|' /C calc'!A0,-2\n"
                                      "'-2+3,-3\n"
                                      "'@SUM(A1),-4\n"
                                      "'\t=1,-5\n"
                                      "\"'\r=1\",-6\n"
                                      "\"'\n=1\",-7\n"
                                      "\"'=a,\"\"b\"\"\",-8\n"
                                      "-0.25,-9\n"
                                      "+1e-3,-10\n"
                                      "'-,-11\n"
                                      "a=b,-12\n"
                                      "'=1,-13\n"
                                      "1-2,-14\n"
                                      ",-15\n");
}

static void test_counts_beyond_integers(void **state)
{
    (void)state;
    struct table t = table_of((const char *const[]){"a", "b", "c"}, 3);
    table_set_count(&t, 0, 1, 1e300, &arena);
    table_set_count(&t, 1, 1, -1.7e308, &arena);
    table_set_count(&t, 2, 1, 9007199254740991.0, &arena);
    assert_string_equal(table_at(&t, 0, 1)->text, "1e+300");
    assert_string_equal(table_at(&t, 1, 1)->text, "-1.7e+308");
    assert_string_equal(table_at(&t, 2, 1)->text, "9,007,199,254,740,991");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_cells_are_shown, release),
        cmocka_unit_test_teardown(test_text_is_not_markdown, release),
        cmocka_unit_test_teardown(test_a_word_in_place_of_a_number, release),
        cmocka_unit_test_teardown(test_no_cell_is_a_formula, release),
        cmocka_unit_test_teardown(test_counts_beyond_integers, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
