/* Turns over a socket: grants arrive, only one process works at a time, and the end of either side
 * is noticed. */
#include "base/turn.h"

#include "base/interrupt.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURNS = 5, WAIT_MS = 5000 };

/* Works the granted units of each turn and reports, until nothing is left. */
static void work(int fd, int64_t left)
{
    struct turn_report said = {left, 0};
    struct turn_grant grant;
    while (said.left > 0) {
        if (turn_wait(fd, &said, &grant) != ST_OK) _exit(2);
        if (grant.of != 77) _exit(3);
        said.left -= grant.units;
        said.ms = (double)grant.number;
    }
    _exit(0);
}

static void test_turns_go_on(void **state)
{
    (void)state;
    int parent, child, status;
    struct turn_report said;
    bool gone = false;
    assert_int_equal(turn_open(&parent, &child), ST_OK);
    pid_t pid = fork();
    if (pid == 0) work(child, TURNS * 3);
    close(child);
    for (int i = 0; i < TURNS; i++) {
        assert_true(turn_reported(parent, WAIT_MS, &said, &gone));
        assert_int_equal(said.left, 3 * (TURNS - i));
        assert_float_equal(said.ms, i, 0);
        assert_false(turn_reported(parent, 20, &said, &gone)); /* it waits */
        assert_false(gone);
        assert_int_equal(turn_give(parent, &(struct turn_grant){77, i + 1, 3}), ST_OK);
    }
    assert_false(turn_reported(parent, WAIT_MS, &said, &gone));
    assert_true(gone);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(parent);
}

static void test_parent_is_gone(void **state)
{
    (void)state;
    int parent, child;
    struct turn_grant grant;
    assert_int_equal(turn_open(&parent, &child), ST_OK);
    close(parent);
    assert_int_equal(turn_wait(child, &(struct turn_report){1, 0}, &grant), ST_INTERRUPTED);
    close(child);
    assert_int_equal(turn_wait(child, &(struct turn_report){1, 0}, &grant), ST_INTERRUPTED);
    assert_non_null(strstr(fail_message(), "--turns="));
}

/* A signal ends the wait: the process can save and stop. */
static void test_signal_ends_the_wait(void **state)
{
    (void)state;
    int parent, child;
    struct turn_grant grant;
    assert_int_equal(turn_open(&parent, &child), ST_OK);
    interrupt_catch();
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(turn_wait(child, &(struct turn_report){1, 0}, &grant), ST_INTERRUPTED);
    interrupt_release();
    close(parent);
    close(child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_go_on),
        cmocka_unit_test(test_parent_is_gone),
        cmocka_unit_test(test_signal_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
