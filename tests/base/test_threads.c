#include "base/threads.h"

#include "../support/workdir.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <omp.h>
#include <string.h>

static int team(void)
{
    int n = 0;
#pragma omp parallel
#pragma omp single
    n = omp_get_num_threads();
    return n;
}

static void test_set(void **state)
{
    (void)state;
    int64_t available = threads_available();
    assert_in_range(available, 1, 100000);
    assert_int_equal(threads_count(), available);
    threads_set(3);
    assert_int_equal(threads_count(), 3);
    assert_int_equal(team(), 3);
    threads_set(0);
    assert_int_equal(threads_count(), available);
    assert_int_equal(team(), available);
}

static void group_file(const char *group, const char *file, const char *text)
{
    char name[256];
    enum status st = file_make_dirs(workdir_path(group));
    assert_int_equal(st, ST_OK);
    snprintf(name, sizeof name, "%s/%s", group, file);
    workdir_text(name, text);
}

static void test_group_limits(void **state)
{
    (void)state;
    const char *root = workdir_open();
    assert_int_equal(threads_group_limit("", root), 0);
    assert_int_equal(threads_group_limit("0::/\n", root), 0);

    /* version 2: the least of the group and those above it; fractions are rounded down, not to 0 */
    group_file("job", "cpu.max", "650000 100000\n");
    group_file("job/step", "cpu.max", "max 100000\n");
    group_file("job/tiny", "cpu.max", "50000 100000\n");
    assert_int_equal(threads_group_limit("0::/job/step\n", root), 6);
    assert_int_equal(threads_group_limit("0::/job/tiny\n", root), 1);
    assert_int_equal(threads_group_limit("0::/job", root), 6);
    assert_int_equal(threads_group_limit("0::/elsewhere/unseen\n", root), 0);

    /* version 1: its own mount, -1 says no limit */
    group_file("cpu/pod", "cpu.cfs_quota_us", "400000\n");
    group_file("cpu/pod", "cpu.cfs_period_us", "100000\n");
    group_file("cpu/free", "cpu.cfs_quota_us", "-1\n");
    group_file("cpu/free", "cpu.cfs_period_us", "100000\n");
    assert_int_equal(threads_group_limit("8:pids:/pod\n4:cpuacct,cpu:/pod\n", root), 4);
    assert_int_equal(threads_group_limit("3:cpuset:/pod\n", root), 0);
    assert_int_equal(threads_group_limit("1:cpu:/free\n", root), 0);

    /* in a container the mount itself is the group */
    group_file(".", "cpu.max", "200000 100000\n");
    assert_int_equal(threads_group_limit("0::/hosts/own/path\n", root), 2);
    workdir_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_group_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
