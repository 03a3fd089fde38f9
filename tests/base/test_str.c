#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void test_append(void **state)
{
    (void)state;
    struct str s = {0};
    assert_string_equal(str_text(&s), "");
    str_printf(&s, "%d-%s", 42, "x");
    str_append(&s, "|");
    str_append_bytes(&s, "abcdef", 3);
    str_append_bytes(&s, NULL, 0);
    assert_string_equal(str_text(&s), "42-x|abc");
    assert_int_equal(s.len, 8);
    str_release(&s);
    assert_string_equal(str_text(&s), "");
    str_append(&s, "again");
    assert_string_equal(str_text(&s), "again");
    str_release(&s);
    assert_null(s.data);
}

static void test_loss(void **state)
{
    (void)state;
    char s[32];
    assert_string_equal(str_loss(s, 4.17438), "4.1744");
    assert_string_equal(str_loss(s, 0.0123), "0.0123");
    assert_string_equal(str_loss(s, 0.0099994), "0.009999");
    assert_string_equal(str_loss(s, 1.23456e-7), "1.235e-07");
    assert_string_equal(str_loss(s, NAN), "nan");
}

static void test_grows(void **state)
{
    (void)state;
    struct str s = {0};
    for (int i = 0; i < 5000; i++) str_printf(&s, "%04d,", i);
    assert_int_equal(s.len, 25000);
    assert_int_equal(strlen(s.data), 25000);
    assert_memory_equal(s.data + 5 * 4321, "4321,", 5);
    str_release(&s);
}

static void test_numbers_have_no_exponent(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(str_number(b, INFINITY, 3), "inf");
    assert_string_equal(str_number(b, 0, 3), "0");
    assert_string_equal(str_number(b, 0.01234, 3), "0.0123");
    assert_string_equal(str_number(b, 0.5, 3), "0.5");
    assert_string_equal(str_number(b, 17, 3), "17");
    assert_string_equal(str_number(b, 2.718, 3), "2.72");
    assert_string_equal(str_number(b, 2197.4, 3), "2,200");
    assert_string_equal(str_number(b, 16034, 4), "16,030");
    assert_string_equal(str_number(b, 9999.7, 4), "10,000");
    assert_string_equal(str_number(b, -1.5e6, 2), "-1,500,000");
}

static void test_thousands(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(str_thousands(b, 0), "0");
    assert_string_equal(str_thousands(b, 999), "999");
    assert_string_equal(str_thousands(b, 1000), "1,000");
    assert_string_equal(str_thousands(b, 1234567), "1,234,567");
    assert_string_equal(str_thousands(b, -123), "-123");
    assert_string_equal(str_thousands(b, -123456), "-123,456");
    assert_string_equal(str_thousands(b, INT64_MIN), "-9,223,372,036,854,775,808");
}

static void test_bytes(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(str_bytes(b, 0), "0 B");
    assert_string_equal(str_bytes(b, 1023), "1023 B");
    assert_string_equal(str_bytes(b, 1024), "1.0 KiB");
    assert_string_equal(str_bytes(b, 1536), "1.5 KiB");
    assert_string_equal(str_bytes(b, 1024 * 1024 - 1), "1.0 MiB");
    assert_string_equal(str_bytes(b, 3.25 * 1024 * 1024 * 1024), "3.2 GiB");
    assert_string_equal(str_bytes(b, -2048), "-2.0 KiB");
}

static void test_bytes_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0B", 0},
                {"640b", 640},
                {"1KiB", 1024},
                {"1 kB", 1000},
                {"1.5GiB", INT64_C(3) << 29},
                {"80GB", INT64_C(80000000000)},
                {"2 mib", 2 << 20},
                {"1TiB", INT64_C(1) << 40},
                {".5MB", 500000},
                {"1PiB", INT64_C(1) << 50}};
    static const char *const bad[] = {"",    "1",    "GiB",  "1G",    "-1GB",    "1GiBB", "1 XB",
                                      "1iB", "nanB", "infB", "1e30B", "9000PiB", "1GB "};
    int64_t bytes;
    for (int i = 0; i < COUNT_OF(good); i++) {
        if (!str_read_bytes(good[i].text, &bytes)) fail_msg("%s is refused", good[i].text);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (int i = 0; i < COUNT_OF(bad); i++)
        if (str_read_bytes(bad[i], &bytes)) fail_msg("%s is %lld", bad[i], (long long)bytes);
}

static void test_distance(void **state)
{
    (void)state;
    assert_int_equal(str_distance("", ""), 0);
    assert_int_equal(str_distance("", "abc"), 3);
    assert_int_equal(str_distance("abc", ""), 3);
    assert_int_equal(str_distance("train", "train"), 0);
    assert_int_equal(str_distance("trian", "train"), 2);
    assert_int_equal(str_distance("kitten", "sitting"), 3);
    assert_int_equal(str_distance("sitting", "kitten"), 3);
    assert_int_equal(str_distance("batchsize", "batch_size"), 1);
    assert_true(str_same("a", "a") && str_same(NULL, NULL));
    assert_false(str_same("a", "b") || str_same("a", NULL) || str_same(NULL, "a"));
}

static void test_flops(void **state)
{
    (void)state;
    char b[32];
    assert_string_equal(str_flops(b, 3.98e14), "398 TFLOP");
    assert_string_equal(str_flops(b, 3.899e9), "3.899 GFLOP");
    assert_string_equal(str_flops(b, 999.94e6), "999.9 MFLOP");
    assert_string_equal(str_flops(b, 999.96e6), "1 GFLOP");
    assert_string_equal(str_flops(b, 0), "0 FLOP");
    assert_string_equal(str_flops(b, 2e21), "2000 EFLOP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_numbers_have_no_exponent),
        cmocka_unit_test(test_thousands),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_are_read),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
