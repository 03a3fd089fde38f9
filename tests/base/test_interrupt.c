#include "base/interrupt.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGXCPU, SIGXFSZ, SIGPIPE};

static void test_each_signal_is_noted(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(signals); i++) {
        interrupt_catch();
        assert_int_equal(interrupt_noted(), 0);
        assert_int_equal(raise(signals[i]), 0);
        assert_int_equal(interrupt_noted(), signals[i]);
        interrupt_release();
    }
}

static bool is_ignored(int number)
{
    struct sigaction now;
    assert_int_equal(sigaction(number, NULL, &now), 0);
    return now.sa_handler == SIG_IGN;
}

/* nohup ignores SIGHUP; shells ignore SIGINT for a program in the background. */
static void test_ignored_signals(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(signals); i++) signal(signals[i], SIG_IGN);
    interrupt_catch();
    raise(SIGHUP);
    raise(SIGXFSZ);
    assert_int_equal(interrupt_noted(), 0);
    raise(SIGINT);
    assert_int_equal(interrupt_noted(), SIGINT);
    interrupt_release();
    for (int i = 0; i < COUNT_OF(signals); i++) {
        assert_true(is_ignored(signals[i]));
        signal(signals[i], SIG_DFL);
    }
}

/* Otherwise the last message would kill the program, and its exit code would be lost. */
static void test_broken_pipe_stays_ignored(void **state)
{
    (void)state;
    interrupt_catch();
    interrupt_release();
    assert_false(is_ignored(SIGPIPE));
    interrupt_catch();
    raise(SIGPIPE);
    raise(SIGTERM);
    interrupt_release();
    assert_true(is_ignored(SIGPIPE));
    assert_false(is_ignored(SIGTERM));
    signal(SIGPIPE, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_signal_is_noted),
        cmocka_unit_test(test_ignored_signals),
        cmocka_unit_test(test_broken_pipe_stays_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
