/* Quoting of words in printed commands. */
#include "base/shell.h"

#include "../support/cases.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_quotes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"runs/a", "runs/a"},
        {"runs/flash=true,dtype=bfloat16", "runs/flash=true,dtype=bfloat16"},
        {"runs/été", "runs/été"},
        {"my run", "'my run'"},
        {"", "''"},
        {"~", "'~'"},
        {"$(rm x)", "'$(rm x)'"},
        {"it's", "'it'\\''s'"},
        {"back\\slash", "'back\\slash'"},
        {"a\nb", "$'a\\x0ab'"},
        {"it's\ta\\b", "$'it\\'s\\x09a\\\\b'"},
        {"a\xff", "$'a\\xff'"},
        {"\xe2\x80\xae", "$'\\xe2\\x80\\xae'"}, /* turns the direction of writing */
    };
    struct arena a = {0};
    for (int i = 0; i < COUNT_OF(cases); i++)
        assert_string_equal(shell_word(cases[i][0], &a), cases[i][1]);
    assert_ptr_equal(shell_word(cases[0][0], &a), cases[0][0]);
    arena_release(&a);
}

/* bash reads the quoted words as the original words. */
static void test_bash_reads_them(void **state)
{
    (void)state;
    if (system("bash -c : 2>/dev/null") != 0) SKIP("bash is not installed");
    static const char *const words[] = {"a b",       "it's",          "x\ny", "*",
                                        "a\xff'b\\", "$HOME `id` \"", ""};
    struct arena a = {0};
    for (int i = 0; i < COUNT_OF(words); i++) {
        char read[64] = "";
        const char *script = arena_printf(&a, "printf %%s %s", shell_word(words[i], &a));
        setenv("STROBE_SCRIPT", script, 1);
        FILE *f = popen("bash -c \"$STROBE_SCRIPT\"", "r");
        assert_non_null(f);
        size_t n = fread(read, 1, sizeof read - 1, f);
        assert_int_equal(pclose(f), 0);
        assert_int_equal(n, strlen(words[i]));
        assert_string_equal(read, words[i]);
    }
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_bash_reads_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
