/* The warning about other programs: when it is given; child processes are not other programs. */
#include "base/load.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_words(void **state)
{
    (void)state;
    char words[LOAD_WORDS];
    assert_null(load_words(NAN, words));
    assert_null(load_words(0.1, words));
    assert_non_null(load_words(0.75, words));
    assert_memory_equal(words, "other programs took 75 % of the ", 32);
    assert_non_null(load_words(1, words));
    assert_true(strlen(words) + 1 < LOAD_WORDS);
}

static void test_a_child_is_not_another_program(void **state)
{
    (void)state;
    double before = host_work_now().own;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        while (host_own_seconds() < 0.2) continue;
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(host_work_now().own - before >= 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_a_child_is_not_another_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
