/* Options of suites: each suite accepts those in its `takes` and no other, reads what it accepts,
 * and hands it to the processes that it starts. */
#include "suite/suite.h"

#include "../support/hand.h"
#include "base/arena.h"
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static enum status parse(struct suite_request *r, struct opt *ret, char **word, int words)
{
    *r = (struct suite_request){0};
    suite_add_options(r, ret, &arena);
    TRY(opt_parse(ret, &words, word, NULL));
    assert_int_equal(words, 0);
    return suite_read_options(r);
}

/* --name with a value: `text` of a text. */
static char *word_of(const struct opt *o, const char *text)
{
    const char *given = o->kind == OPT_TEXT ? text : o->kind == OPT_INT ? "3" : "64GiB";
    return o->kind == OPT_FLAG ? arena_printf(&arena, "--%s", o->name)
                               : arena_printf(&arena, "--%s=%s", o->name, given);
}

static bool names(const char *help, const char *suite)
{
    const char *list = strstr(help, "suites: ");
    assert_non_null(list);
    return strstr(list, suite) ? !strstr(list, "all but ") : strstr(list, "all but ") != NULL;
}

static void test_a_suite_accepts_what_it_takes(void **state)
{
    (void)state;
    struct opt row[SUITE_OPTION_COUNT + 1] = {{0}};
    struct suite_request r;
    for (const struct suite *s = suites; s->name; s++) {
        assert_false(s->takes >> SUITE_OPTION_COUNT);
        for (int i = 0; i < SUITE_OPTION_COUNT; i++) {
            bool takes = s->takes >> i & 1;
            suite_add_options(&r, row, &arena);
            char *word = word_of(&row[i], "x");
            hand_ok(parse(&r, row, &word, 1));
            for (int k = 0; k < SUITE_OPTION_COUNT; k++)
                assert_true(suite_is_given(&r, row[k].name) == (k == i));
            assert_int_equal(suite_check_options(s, &r), takes ? ST_OK : ST_USAGE);
            if (!takes)
                assert_non_null(strstr(fail_message(),
                                       arena_printf(&arena, "does not take --%s;", row[i].name)));
            assert_true(names(row[i].help, s->name) == takes);
        }
    }
}

static void test_numbers_begin_at_one(void **state)
{
    (void)state;
    static const char *const wrong[] = {"0", "-1", "-2", "1000000001"};
    struct opt row[SUITE_OPTION_COUNT + 1] = {{0}};
    struct suite_request r;
    int numbers = 0;
    suite_add_options(&r, row, &arena);
    for (int i = 0; i < SUITE_OPTION_COUNT; i++) {
        const char *name = row[i].name;
        if (row[i].kind != OPT_INT) continue;
        numbers++;
        for (int k = 0; k < COUNT_OF(wrong); k++) {
            char *word = arena_printf(&arena, "--%s=%s", name, wrong[k]);
            assert_int_equal(parse(&r, row, &word, 1), ST_USAGE);
            assert_non_null(
                strstr(fail_message(), arena_printf(&arena, "--%s must be 1 to ", name)));
        }
    }
    assert_true(numbers > 0);
    hand_ok(parse(&r, row, NULL, 0));
    for (int i = 0; i < SUITE_OPTION_COUNT; i++) assert_false(suite_is_given(&r, row[i].name));
}

static void test_options_of_suites_alone(void **state)
{
    (void)state;
    struct suite_request r = {.steps = 2, .phase = "step"};
    hand_ok(suite_check_options(NULL, &r));
    r.rounds = 2;
    assert_int_equal(suite_check_options(NULL, &r), ST_USAGE);
    assert_non_null(strstr(fail_message(), "--rounds needs --suite=NAME"));
}

/* A text that means nothing is refused, so the suite reads the option. */
static void test_accepted_texts_are_read(void **state)
{
    (void)state;
    char *device = "--device=cpu";
    struct opt row[SUITE_OPTION_COUNT + 1] = {{0}};
    struct suite_request r;
    struct sheet sheet;
    int read = 0;
    suite_add_options(&r, row, &arena);
    for (const struct suite *s = suites; s->name; s++) {
        for (int i = 0; i < SUITE_OPTION_COUNT; i++) {
            if (row[i].kind != OPT_TEXT || !(s->takes >> i & 1)) continue;
            char *word = word_of(&row[i], "nothing");
            hand_ok(parse(&r, row, &word, 1));
            r.word = &device, r.words = 1, r.out_dir = "build/tmp/suite_options";
            if (suite_run(s, &r, &sheet, &arena) != ST_USAGE)
                fail_msg("%s accepts --%s=nothing", s->name, row[i].name);
            assert_non_null(strstr(fail_message(), row[i].name));
            read++;
        }
    }
    assert_true(read > 0);
}

static struct suite_request child;
static struct opt child_row[SUITE_OPTION_COUNT + 1];

/* Reads the options of suites among the words, and ends the suite. */
static enum status run_command(void *user, char *const *word, int words, bool quiet)
{
    (void)user, (void)quiet;
    char **option = ARENA_NEW(&arena, char *, words);
    int options = 0;
    for (int i = 0; i < words; i++)
        for (const struct opt *o = child_row; o->name; o++) {
            size_t n = strlen(o->name);
            const char *at = word[i] + 2;
            if (!strncmp(word[i], "--", 2) && !strncmp(at, o->name, n) && (!at[n] || at[n] == '='))
                option[options++] = word[i];
        }
    hand_ok(parse(&child, child_row, option, options));
    return ST_IO;
}

/* cs336-warmup measures in processes: all its options but one are theirs. */
static void test_processes_get_the_options(void **state)
{
    (void)state;
    static char *words[] = {"--device=cpu", "--n_layer=1", "--block_size=8"};
    char *word[SUITE_OPTION_COUNT];
    int n = 0;
    const struct suite *s, *of_child;
    struct suite_request r;
    struct sheet sheet;
    hand_ok(suite_find("cs336-warmup", &s));
    hand_ok(suite_find("cs336-e2e", &of_child));
    suite_add_options(&r, child_row, &arena);
    for (int i = 0; i < SUITE_OPTION_COUNT; i++) {
        const char *name = child_row[i].name;
        const char *text = !strcmp(name, "size") ? "small" : !strcmp(name, "warmup") ? "0" : "step";
        if (s->takes >> i & 1) word[n++] = word_of(&child_row[i], text);
    }
    hand_ok(parse(&r, child_row, word, n));
    r.word = words, r.words = COUNT_OF(words), r.out_dir = "build/tmp/suite_options";
    r.command = run_command;
    threads_set(1);
    assert_int_equal(suite_run(s, &r, &sheet, &arena), ST_IO);
    hand_ok(suite_check_options(of_child, &child));
    for (int i = 0; i < SUITE_OPTION_COUNT; i++) {
        const char *name = child_row[i].name;
        if (strcmp(name, "rounds") && s->takes >> i & 1 && !suite_is_given(&child, name))
            fail_msg("--%s is not handed on", name);
    }
    assert_true(child.steps == r.steps && child.limit == r.limit && child.full);
    assert_string_equal(child.phase, "step");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_suite_accepts_what_it_takes, release),
        cmocka_unit_test_teardown(test_numbers_begin_at_one, release),
        cmocka_unit_test_teardown(test_options_of_suites_alone, release),
        cmocka_unit_test_teardown(test_accepted_texts_are_read, release),
        cmocka_unit_test_teardown(test_processes_get_the_options, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
