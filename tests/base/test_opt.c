#include "base/opt.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct {
    bool json;
    const char *from;
    int64_t steps;
    int64_t rate;
    int64_t socket;
} got;

static const struct opt table[] = {
    {"json", OPT_FLAG, &got.json, NULL, "print JSON"},
    {"from", OPT_TEXT, &got.from, "FILE", "read this"},
    {"steps", OPT_INT, &got.steps, "N", "how many"},
    {"rate", OPT_INT, &got.rate, NULL, "how fast"},
    {"socket", OPT_INT, &got.socket, "FD", NULL},
    {0},
};

static bool keep_batch(const char *word)
{
    return !strncmp(word, "--rates", 7);
}

static int reset(void **state)
{
    (void)state;
    memset(&got, 0, sizeof got);
    return 0;
}

static void test_all_spellings(void **state)
{
    (void)state;
    char *argv[] = {"one",    "--json", "--from", "a.txt", "two",          "--steps=12",
                    "--rate", "-25",    "-",      "--",    "--json=false", NULL};
    int argc = COUNT_OF(argv) - 1;
    assert_int_equal(opt_parse(table, &argc, argv, NULL), ST_OK);
    assert_true(got.json);
    assert_string_equal(got.from, "a.txt");
    assert_int_equal(got.steps, 12);
    assert_int_equal(got.rate, -25);
    assert_int_equal(argc, 4);
    assert_string_equal(argv[0], "one");
    assert_string_equal(argv[1], "two");
    assert_string_equal(argv[2], "-");
    assert_string_equal(argv[3], "--json=false");
}

static void test_flag_values(void **state)
{
    (void)state;
    char *on[] = {"--json=true", NULL}, *off[] = {"--json=false", NULL},
         *odd[] = {"--json=1", NULL};
    int argc = 1;
    assert_int_equal(opt_parse(table, &argc, on, NULL), ST_OK);
    assert_true(got.json);
    argc = 1;
    assert_int_equal(opt_parse(table, &argc, off, NULL), ST_OK);
    assert_false(got.json);
    argc = 1;
    assert_int_equal(opt_parse(table, &argc, odd, NULL), ST_USAGE);
}

static void assert_refused(char *word, bool (*keep)(const char *), const char *sentence)
{
    char *argv[] = {word, NULL};
    int argc = 1;
    assert_int_equal(opt_parse(table, &argc, argv, keep), ST_USAGE);
    assert_string_equal(fail_message(), sentence);
}

static void test_errors(void **state)
{
    (void)state;
    assert_refused("--jsno=1", NULL, "unknown option --jsno; did you mean --json?");
    assert_refused(
        "--color", NULL,
        "unknown option --color; options of this command: --json, --from, --steps, --rate");
    assert_refused("-j", NULL,
                   "unknown option -j; options of this command: --json, --from, --steps, --rate");
    assert_refused("-steps=1", NULL,
                   "unknown option -steps=1; options and keys have two dashes: --steps=1");
    assert_refused("--sockets", NULL,
                   "unknown option --sockets; options of this command: --json, --from, --steps, "
                   "--rate");
    assert_refused("--steps=12a", NULL, "--steps must be an integer, not 12a");
    assert_refused("--steps=", NULL, "--steps must be an integer, not ");
    assert_refused("--steps=99999999999999999999", NULL,
                   "--steps must be an integer, not 99999999999999999999");
    assert_refused("--rate=fast", NULL, "--rate must be an integer, not fast");
    assert_refused("--from", NULL, "--from needs a value: --from=FILE");
}

static void test_keep(void **state)
{
    (void)state;
    char *argv[] = {"--rates=1", "--json", "--batchsize=4", NULL};
    int argc = 3;
    assert_int_equal(opt_parse(table, &argc, argv, keep_batch), ST_OK);
    assert_int_equal(argc, 2); /* kept, and similar to no option */
    assert_string_equal(argv[0], "--rates=1");
    assert_string_equal(argv[1], "--batchsize=4");
    assert_refused("--jsn", keep_batch, "unknown option --jsn; did you mean --json?");
}

static void test_a_text_is_no_word_for_a_shell(void **state)
{
    (void)state;
    char *argv[] = {"--from=~/text", NULL};
    int argc = 1;
    assert_int_equal(opt_parse(table, &argc, argv, NULL), ST_USAGE);
    assert_non_null(strstr(fail_message(), "only a shell expands ~"));
}

static void test_print(void **state)
{
    (void)state;
    struct str s = {0};
    opt_print(table, &s);
    assert_non_null(strstr(str_text(&s), "  --json                  print JSON\n"));
    assert_non_null(strstr(str_text(&s), "  --from=FILE             read this\n"));
    assert_non_null(strstr(str_text(&s), "  --rate=VALUE            how fast\n"));
    assert_null(strstr(str_text(&s), "socket"));
    str_release(&s);
}

static void test_help(void **state)
{
    (void)state;
    char *argv[] = {"--steps=3", "--nonsense", "-h", NULL};
    int argc = 3;
    assert_int_equal(opt_parse(table, &argc, argv, NULL), ST_HELP);
    assert_int_equal(got.steps, 0);
    assert_non_null(strstr(opt_help(), "--from=FILE"));
    char *behind[] = {"--", "-h", NULL};
    argc = 2;
    assert_int_equal(opt_parse(table, &argc, behind, NULL), ST_OK);
    assert_int_equal(argc, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_all_spellings, reset),
        cmocka_unit_test_setup(test_flag_values, reset),
        cmocka_unit_test_setup(test_errors, reset),
        cmocka_unit_test_setup(test_keep, reset),
        cmocka_unit_test_setup(test_a_text_is_no_word_for_a_shell, reset),
        cmocka_unit_test_setup(test_print, reset),
        cmocka_unit_test_setup(test_help, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
