/* Text enters markup escaped, and only so: what forgets it does not compile. */
#include "../support/cases.h"
#include "base/arena.h"
#include "present/markup.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct markup m;

static int release(void **state)
{
    (void)state;
    markup_release(&m);
    return 0;
}

static void test_arguments_are_escaped(void **state)
{
    (void)state;
    markup_printf(&m, "<a b=\"%s\">%s</a> 100 %%", "\"' onload='x", "</a><script>&");
    assert_string_equal(markup_text(&m), "<a b=\"&quot;&#39; onload=&#39;x\">"
                                         "&lt;/a&gt;&lt;script&gt;&amp;</a> 100 %");
}

/* An SVG with a control character or a byte that is not UTF-8 is not drawn at all. */
static void test_what_xml_forbids_is_shown(void **state)
{
    (void)state;
    markup_printf(&m, "%s",
                  "a\x1b[31m\x01\xff\xc0\xaf\xed\xa0\x80 \xe2\x80\xae\xef\xbf\xbf\n\xc3\xa4");
    assert_string_equal(markup_text(&m), "a\\x1b[31m\\x01\\xff\\xc0\\xaf\\xed\\xa0\\x80 "
                                         "U+202EU+FFFF\\n\xc3\xa4");
    markup_release(&m);
    markup_lines(&m, "one\n\ttwo\r<");
    assert_string_equal(markup_text(&m), "one\n\ttwo\\r&lt;");
}

static void test_numbers(void **state)
{
    (void)state;
    markup_printf(&m, "%d %lld %.1f %.3g %g|", -5, 1LL << 40, 2.25, 1e9 / 3, 0.5);
    assert_string_equal(markup_text(&m), "-5 1099511627776 2.2 3.33e+08 0.5|");
    markup_release(&m);
    markup_printf(&m, "%.1f %.1f %.3g", NAN, -INFINITY, (double)INFINITY);
    assert_string_equal(markup_text(&m), "0.0 0.0 0");
    markup_release(&m);
    markup_printf(&m, "%.1f", -1.7e308);
    assert_int_equal(markup_bytes(&m), 312);
}

static void test_json_cannot_leave_its_script(void **state)
{
    (void)state;
    json_t *data = json_pack("{s:s}", "</script>&", "<!--\xe2\x80\xa8\xe2\x80\xa9]]>");
    markup_json(&m, data);
    assert_string_equal(markup_text(&m), "{\"\\u003c/script\\u003e\\u0026\":"
                                         "\"\\u003c!--\\u2028\\u2029]]\\u003e\"}");
    json_t *back = json_loads(markup_text(&m), 0, NULL);
    assert_true(json_equal(data, back));
    json_decref(back);
    json_decref(data);
}

/* Whether a function with this body compiles. */
static bool compiles(const char *body)
{
    char path[] = "/tmp/strobe_markup_XXXXXX.c", command[256];
    int fd = mkstemps(path, 2);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fprintf(file,
            "#include \"present/markup.h\"\n"
            "void f(struct markup *m, struct str *s, const char *text);\n"
            "void f(struct markup *m, struct str *s, const char *text)\n{\n"
            "(void)m, (void)s, (void)text;\n%s\n}\n",
            body);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command,
             "cc -std=c2x -D_GNU_SOURCE -Isrc -Wall -Wextra -Werror -fsyntax-only %s 2>/dev/null",
             path);
    bool good = system(command) == 0;
    remove(path);
    return good;
}

static void test_raw_text_does_not_compile(void **state)
{
    (void)state;
    if (!compiles("markup_printf(m, \"<b>%s</b>\", text);")) SKIP("there is no C compiler cc");
    static const char *const wrong[] = {
        "markup_printf(m, text);", "markup_printf(m, str_text(s));",
        "str_append(m, text);",    "str_printf(m, \"<b>%s</b>\", text);",
        "markup_join(m, s);",      "markup_join(m, text);",
        "markup_json(m, text);",   "markup_printf(m, \"%d\", text);",
    };
    for (int i = 0; i < COUNT_OF(wrong); i++)
        if (compiles(wrong[i])) fail_msg("this compiles: %s", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_arguments_are_escaped, release),
        cmocka_unit_test_teardown(test_what_xml_forbids_is_shown, release),
        cmocka_unit_test_teardown(test_numbers, release),
        cmocka_unit_test_teardown(test_json_cannot_leave_its_script, release),
        cmocka_unit_test(test_raw_text_does_not_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
