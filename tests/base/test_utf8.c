#include "base/utf8.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_texts(void **state)
{
    (void)state;
    assert_true(utf8_is(""));
    assert_true(utf8_is("plain"));
    assert_true(utf8_is("gr\xc3\xbc\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"));
}

/* Truncated, lone continuation byte, overlong, surrogate, above U+10FFFF, invalid first byte. */
static void test_what_is_no_text(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "\xc3",         "a\xe2\x82",        "\xbc",
        "\xc3(",        "\xc0\xaf",         "\xe0\x80\xaf",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80",
        "\xff",
    };
    for (int i = 0; i < COUNT_OF(wrong); i++) assert_false(utf8_is(wrong[i]));
}

static void test_code_points(void **state)
{
    (void)state;
    static const int32_t codes[] = {0,      'a',    0x7f,   0x80,    0x7ff,   0x800,
                                    0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
    for (int i = 0; i < COUNT_OF(codes); i++) {
        char text[UTF8_BYTES];
        int bytes = 0, begun = 0;
        utf8_encode(codes[i], text);
        assert_int_equal(utf8_decode(text, UTF8_BYTES - 1, &bytes), codes[i]);
        for (int k = 0; k < bytes; k++) begun += utf8_begins(text[k]);
        assert_int_equal(begun, 1);
    }
}

/* While a text grows, at most three bytes are held back; a complete text is shown whole. */
static void test_growing_texts(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa9 \xe2\x82\xac\xf0\x9f\x98\x80z";
    for (int n = 0; n <= (int)strlen(text); n++) {
        int held = utf8_unfinished(text, n);
        struct str s = {0};
        assert_in_range(held, 0, 3);
        utf8_append_valid(&s, text, n - held);
        assert_int_equal(s.len, n - held);
        assert_memory_equal(str_text(&s), text, n - held);
        str_release(&s);
    }
    assert_int_equal(utf8_unfinished("a\xf0\x9f\x98", 4), 3);
    assert_int_equal(utf8_unfinished("\x9f\x98\x80", 3), 0); /* nothing completes them */
    assert_int_equal(utf8_unfinished("\xc0", 1), 0);
    assert_int_equal(utf8_unfinished("\xff", 1), 0);
    struct str s = {0};
    utf8_append_valid(&s, "a\xffz\xe2\x82", 5);
    assert_string_equal(str_text(&s), "a\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
    str_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_what_is_no_text),
        cmocka_unit_test(test_code_points),
        cmocka_unit_test(test_growing_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
