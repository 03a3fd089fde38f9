#include "base/log.h"

#include "../support/capture.h"
#include "../support/cases.h"
#include "base/clock.h"
#include "base/interrupt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void test_levels(void **state)
{
    (void)state;
    stderr_capture();
    log_warning("w%d", 1);
    log_info("i%d", 2);
    log_debug("d%d", 3);
    log_set_level(LOG_ERROR);
    log_warning("unseen");
    log_set_level(LOG_DEBUG);
    log_debug("d%d", 4);
    log_set_level(LOG_INFO);
    assert_string_equal(stderr_release(), "strobe: warning: w1\ni2\ndebug: d4\n");
}

/* Changes the start time instead of waiting. */
static void age(struct progress *p, double seconds)
{
    p->start_ns -= (int64_t)(seconds * 1e9);
    p->shown_ns -= (int64_t)(seconds * 1e9);
}

/* A name cannot clear the screen, forge a line or hide a part of its text. */
static void test_names_control_nothing(void **state)
{
    (void)state;
    struct progress p;
    stderr_capture();
    log_warning("%s is damaged", "a\nstrobe: all is well\x1b[2J\xe2\x80\xae");
    log_info("two lines:\n%s", "x\x1by\nz");
    progress_start(&p,
                   "tr\x1b"
                   "ain",
                   0, 0);
    age(&p, 6);
    progress_show(&p, 1, "a\rb\xff");
    progress_end(&p);
    assert_string_equal(stderr_release(),
                        "strobe: warning: a\\nstrobe: all is well\\x1b[2JU+202E is damaged\n"
                        "two lines:\nx\\x1by\nz\n"
                        "tr\\x1bain 1  a\\rb\\xff\n");
}

static void test_plain_lines(void **state)
{
    (void)state;
    struct progress p;
    stderr_capture();
    progress_start(&p, "train", 100, 200);
    progress_show(&p, 110, "loss 4.1"); /* too early */
    age(&p, 6);
    progress_show(&p, 120, "loss 4.0"); /* 20 in 6 s, 80 to go: 24 s */
    progress_show(&p, 121, "unseen");
    progress_show(&p, 200, "loss 3.9"); /* the last is always shown */
    progress_show(&p, 200, "unseen");   /* once */
    progress_end(&p);
    assert_string_equal(stderr_release(), "train  24 s left  60 %  120/200  loss 4.0\n"
                                          "train  100 %  200/200  loss 3.9\n");
}

/* After the first line, one line a minute; inner work prints its first line after a minute. */
static void test_plain_lines_are_sparse(void **state)
{
    (void)state;
    struct progress p, inner;
    stderr_capture();
    progress_start(&p, "train", 0, 0);
    progress_start(&inner, "eval", 0, 0);
    inner.inner = true;
    for (int i = 1; i <= 30; i++) {
        age(&p, 6);
        age(&inner, 2);
        progress_show(&p, i, NULL);
        progress_show(&inner, i, NULL);
    }
    assert_string_equal(stderr_release(), "train 1\ntrain 11\ntrain 21\neval 30\n");
}

/* Results and messages that go to one file stay in order. */
static void test_order_of_streams(void **state)
{
    (void)state;
    char path[] = "/tmp/test_log_XXXXXX", text[64];
    int file = mkstemp(path), out, err;
    assert_true(file >= 0);
    unlink(path);
    fflush(stdout);
    out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(file, STDOUT_FILENO), dup2(file, STDERR_FILENO);
    printf("one\n");
    log_info("two");
    printf("three\n");
    fflush(stdout);
    dup2(out, STDOUT_FILENO), dup2(err, STDERR_FILENO);
    close(out), close(err);
    text[pread(file, text, sizeof text - 1, 0)] = '\0';
    close(file);
    assert_string_equal(text, "one\ntwo\nthree\n");
}

/* After a signal, a stalled reader of stdout does not hold messages back. */
static void test_results_without_a_reader(void **state)
{
    (void)state;
    static char block[4096];
    int ends[2], out;
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], block, sizeof block) > 0) continue;
    fcntl(ends[1], F_SETFL, 0);
    fflush(stdout);
    out = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    interrupt_catch();
    raise(SIGTERM);
    printf("a result");
    stderr_capture();
    log_info("a message");
    const char *text = stderr_release();
    interrupt_release();
    while (read(ends[0], block, sizeof block) > 0) continue;
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out), close(ends[0]), close(ends[1]);
    assert_string_equal(text, "a message\n");
}

static void test_short_work_prints_nothing(void **state)
{
    (void)state;
    struct progress p;
    stderr_capture();
    progress_start(&p, "train", 0, 2);
    progress_show(&p, 1, "");
    progress_show(&p, 2, "");
    progress_end(&p);
    assert_string_equal(stderr_release(), "");
}

static void test_long_times_and_unknown_totals(void **state)
{
    (void)state;
    struct progress p;
    stderr_capture();
    progress_start(&p, "a", 0, 1000);
    age(&p, 10);
    progress_show(&p, 1, NULL); /* 9990 s */
    progress_start(&p, "b", 0, 13);
    age(&p, 10);
    progress_show(&p, 1, NULL); /* 120 s */
    progress_start(&p, "c", 0, 0);
    age(&p, 10);
    progress_show(&p, 77, NULL);
    log_set_level(LOG_WARNING);
    age(&p, 10);
    progress_show(&p, 78, NULL);
    log_set_level(LOG_INFO);
    assert_string_equal(stderr_release(), "a  2 h 46 min left  0 %  1/1000\n"
                                          "b  2 min 00 s left  8 %  1/13\n"
                                          "c 77\n");
}

/* Reads until the text ends with `end`, or until nothing arrives for two seconds. */
static void read_until(int fd, const char *end, char *text, size_t size)
{
    size_t n = 0;
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    while (n + 1 < size && poll(&waiting, 1, 2000) == 1) {
        ssize_t more = read(fd, text + n, size - 1 - n);
        if (more <= 0) break;
        n += (size_t)more;
        if (n >= strlen(end) && !memcmp(text + n - strlen(end), end, strlen(end))) break;
    }
    text[n] = '\0';
}

/* Runs on a pseudo terminal of 70 columns to check what the user sees. */
static void test_terminal(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY), slave = -1;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0)
        slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    if (slave < 0) SKIP("no pseudo-terminals here");
    struct winsize size = {.ws_row = 24, .ws_col = 70};
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    int before = dup(STDERR_FILENO);
    fflush(stderr);
    dup2(slave, STDERR_FILENO);

    struct progress p;
    progress_start(&p, "train", 0, 48);
    progress_show(&p, 1, "at once");
    progress_show(&p, 2, "unseen"); /* within a tenth of a second */
    age(&p, 1);
    progress_show(&p, 12, "loss 2.0");
    log_info("a message");
    age(&p, 1);
    progress_show(&p, 24, "a detail that is much too long to fit into seventy columns");
    progress_show(&p, 48, "done");
    progress_end(&p);
    log_info("after");

    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    char text[4096];
    read_until(master, "after\r\n", text, sizeof text);
    close(slave);
    close(master);
    assert_string_equal(
        text, "\rtrain  0 s left [>                       ]  2 %  1/48  at once\033[K"
              "\rtrain  3 s left [======>                 ]  25 %  12/48  loss 2.0\033[K"
              "\r\033[Ka message\r\n"
              "\rtrain  2 s left  50 %  24/48  a detail that is much too long to fit i\033[K"
              "\rtrain [========================]  100 %  48/48  done\033[K\r\n"
              "after\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_names_control_nothing),
        cmocka_unit_test(test_plain_lines),
        cmocka_unit_test(test_plain_lines_are_sparse),
        cmocka_unit_test(test_order_of_streams),
        cmocka_unit_test(test_results_without_a_reader),
        cmocka_unit_test(test_short_work_prints_nothing),
        cmocka_unit_test(test_long_times_and_unknown_totals),
        cmocka_unit_test(test_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
