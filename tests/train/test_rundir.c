/* A run directory that cannot be created or opened: created folders are removed again, and the
 * advice fits the reason. This program replaces the system calls that fail. */
#include "train/rundir.h"

#include "../support/workdir.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static int open_error, mkdir_error; /* 0: the call succeeds */

int open(const char *path, int flags, ...)
{
    errno = open_error;
    return open_error ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, 0);
}

/* With _FORTIFY_SOURCE, the C library's header turns open into this. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
    return open(path, flags);
}

int mkdir(const char *path, mode_t mode)
{
    errno = mkdir_error;
    return mkdir_error ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    open_error = mkdir_error = 0;
    workdir_close();
    return 0;
}

static const struct {
    int error;
    const char *advice;
} reasons[] = {{EMFILE, "close other programs"},
               {ENOMEM, "close other programs"},
               {EIO, "repeat the command"},
               {EACCES, "choose another --out_dir"}};

/* rundir_claim fails with the reason and the advice that fits it. */
static void expect_advice(const char *path, int i)
{
    struct rundir r;
    assert_int_equal(rundir_claim(&r, path, true), file_status(reasons[i].error));
    bool fits = strstr(fail_message(), strerror(reasons[i].error)) &&
                strstr(fail_message(), reasons[i].advice) &&
                (i == COUNT_OF(reasons) - 1) == (strstr(fail_message(), "--out_dir") != NULL);
    if (!fits) fail_msg("%s", fail_message());
    rundir_release(&r, true);
}

static void test_one_that_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(reasons); i++) {
        open_error = reasons[i].error;
        expect_advice(workdir_path("runs/of/today"), i);
        assert_false(file_exists(workdir_path("runs")));
    }
}

static void test_one_that_was_there_stays(void **state)
{
    (void)state;
    assert_int_equal(file_make_dirs(workdir_path("runs")), ST_OK);
    open_error = EIO;
    expect_advice(workdir_path("runs/new"), 2);
    assert_true(file_exists(workdir_path("runs")));
    assert_false(file_exists(workdir_path("runs/new")));
}

static void test_one_that_cannot_be_made(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(reasons); i++) {
        mkdir_error = reasons[i].error;
        expect_advice(workdir_path("runs"), i);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_that_cannot_be_opened_leaves_nothing),
        TEST(test_one_that_was_there_stays),
        TEST(test_one_that_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
