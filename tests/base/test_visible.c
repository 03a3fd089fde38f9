/* Control characters in text from files and users are escaped. */
#include "base/base.h"
#include "base/str.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text, *line;
} cases[] = {
    {"plain, \xc3\xa4\xe2\x82\xac \xf0\x9f\x98\x80 C:\\n",
     "plain, \xc3\xa4\xe2\x82\xac \xf0\x9f\x98\x80 C:\\n"},
    {"\x1b]0;title\x07\x1b[2J", "\\x1b]0;title\\x07\\x1b[2J"},
    {"a\rb\nc\td\x7f\b", "a\\rb\\nc\\td\\x7f\\x08"},
    {"\xc2\x9b"
     "31m",
     "U+009B31m"}, /* CSI of C1 */
    {"\x9b"
     "31m\xff",
     "\\x9b31m\\xff"}, /* the same as a byte */
    {"a\xe2\x80\xae"
     "b\xe2\x81\xa6\xe2\x80\x8b",
     "aU+202EbU+2066U+200B"},
    {"\xef\xbb\xbf\xe2\x80\xa8", "U+FEFFU+2028"},
    {"\xed\xa0\x80\xc0\x80\xe2\x82", "\\xed\\xa0\\x80\\xc0\\x80\\xe2\\x82"},
};

static void test_forms(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct str s = {0}, again = {0};
        visible_append(&s, cases[i].text);
        assert_string_equal(str_text(&s), cases[i].line);
        assert_true(utf8_is(str_text(&s)));
        visible_append(&again, str_text(&s));
        assert_string_equal(str_text(&again), str_text(&s));
        str_release(&s);
        str_release(&again);
    }
    struct str s = {0};
    visible_append_lines(&s, "one\n\ttwo\r\x1b");
    assert_string_equal(str_text(&s), "one\n\ttwo\\r\\x1b");
    str_release(&s);
}

static void test_in_place(void **state)
{
    (void)state;
    char text[12] = "ab\x1b"
                    "cd";
    visible_in_place(text, sizeof text, false);
    assert_string_equal(text, "ab\\x1bcd");
    char tight[6] = "a\x1b\x1b";
    visible_in_place(tight, sizeof tight, false); /* an escape is whole or absent */
    assert_string_equal(tight, "a\\x1b");
}

static void test_errors(void **state)
{
    (void)state;
    assert_int_equal((fail)(ST_IO, "%s: no such file", "a\nstrobe: all is well\x1b[1A"), ST_IO);
    assert_string_equal(fail_message(), "a\\nstrobe: all is well\\x1b[1A: no such file");
    assert_int_equal(fail_in(ST_IO, "run %s", "\x1b"), ST_IO);
    assert_string_equal(fail_message(), "run \\x1b: a\\nstrobe: all is well\\x1b[1A: no such file");
    assert_int_equal((fail)(ST_IO, "of a compiler:\n%s", "line 1\nline 2\x1b"), ST_IO);
    assert_string_equal(fail_message(), "of a compiler:\nline 1\nline 2\\x1b");
}

/* A text written in pieces, like the tokens of a sample, is escaped like the whole text. */
static void test_pieces(void **state)
{
    (void)state;
    static const char text[] = "a\xe2\x82\xac\xf0\x9f\x98\x80\x1b[1m\xe2\x80\xae\n\xff\xe2\x82x\n";
    for (int size = 1; size <= (int)sizeof text; size++) {
        struct terminal_guard g = {0};
        struct str s = {0};
        for (int i = 0; i < (int)sizeof text - 1; i += size)
            terminal_filter(&g, text + i, min_i64(size, (int)sizeof text - 1 - i), &s);
        assert_string_equal(str_text(&s), "a\xe2\x82\xac\xf0\x9f\x98\x80\\x1b[1mU+202E\n"
                                          "\\xff\\xe2\\x82x\n");
        str_release(&s);
    }
}

static void test_fit(void **state)
{
    (void)state;
    assert_int_equal(utf8_fit("abc", 5), 3);
    assert_int_equal(utf8_fit("abc", 2), 2);
    assert_int_equal(utf8_fit("a\xe2\x82\xac", 4), 4);
    assert_int_equal(utf8_fit("a\xe2\x82\xac", 3), 1);
    assert_int_equal(utf8_fit("\xe2\x82\xac", 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),  cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
