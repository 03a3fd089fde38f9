#include "base/free_memory.h"

#include "../support/cases.h"
#include "../support/workdir.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

static const int64_t MIB = 1 << 20;

static void group_file(const char *group, const char *file, const char *text)
{
    char name[256];
    enum status st = file_make_dirs(workdir_path(group));
    assert_int_equal(st, ST_OK);
    snprintf(name, sizeof name, "%s/%s", group, file);
    workdir_text(name, text);
}

static void test_meminfo(void **state)
{
    (void)state;
    assert_int_equal(free_in_meminfo("MemTotal:  100 kB\nMemAvailable:   2048 kB\n"), 2 * MIB);
    assert_int_equal(free_in_meminfo("MemTotal:  100 kB\n"), -1);
    assert_int_equal(free_in_meminfo(""), -1);
}

static void test_groups_version_2(void **state)
{
    (void)state;
    const char *root = workdir_open();
    assert_int_equal(free_in_groups("", root), -1);
    assert_int_equal(free_in_groups("0::/\n", root), -1);
    group_file("job", "memory.max", "104857600\n"); /* 100 MiB */
    group_file("job", "memory.current", "31457280\n");
    group_file("job", "memory.stat", "anon 1\ninactive_file 10485760\nactive_file 5\n");
    group_file("job/step", "memory.max", "max\n");
    group_file("job/step", "memory.current", "9\n");
    group_file("job/tiny", "memory.max", "2097152\n");
    group_file("job/tiny", "memory.current", "1048576\n");
    group_file("job/full", "memory.max", "1048576\n");
    group_file("job/full", "memory.current", "2097152\n");
    assert_int_equal(free_in_groups("0::/job/step\n", root), 80 * MIB);
    assert_int_equal(free_in_groups("0::/job/tiny\n", root), 1 * MIB);
    assert_int_equal(free_in_groups("0::/job/full", root), 0);
    assert_int_equal(free_in_groups("0::/elsewhere/of/the/host\n", root), -1);
    workdir_close();
}

static void test_groups_version_1(void **state)
{
    (void)state;
    const char *root = workdir_open();
    group_file("memory", "memory.limit_in_bytes", "8388608\n");
    group_file("memory", "memory.usage_in_bytes", "4194304\n");
    group_file("memory", "memory.stat", "inactive_file 0\ntotal_inactive_file 1048576\n");
    group_file("memory/a:b", "memory.limit_in_bytes", "9223372036854771712\n");
    group_file("memory/a:b", "memory.usage_in_bytes", "4096\n");
    assert_int_equal(free_in_groups("3:cpu,cpuacct:/x\n7:memory:/a:b\n", root), 5 * MIB);
    assert_int_equal(free_in_groups("7:memory:/\n", root), 5 * MIB);
    assert_int_equal(free_in_groups("7:cpu:/\n", root), -1);
    workdir_close();
}

static void test_of_this_machine(void **state)
{
    (void)state;
    int64_t room = free_memory_bytes();
    if (room < 0) SKIP("this system does not tell its free memory");
    assert_true(room > MIB && room < (INT64_C(1) << 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meminfo),
        cmocka_unit_test(test_groups_version_2),
        cmocka_unit_test(test_groups_version_1),
        cmocka_unit_test(test_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
