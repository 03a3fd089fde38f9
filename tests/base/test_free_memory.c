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
#include <string.h>
#include <sys/resource.h>

static const int64_t MIB = 1 << 20;

static void group_file(const char *group, const char *file, const char *text)
{
    char name[256];
    enum status st = file_make_dirs(workdir_path(group));
    assert_int_equal(st, ST_OK);
    snprintf(name, sizeof name, "%s/%s", group, file);
    workdir_text(name, text);
}

static struct memory_limit of_groups(const char *groups, const char *root)
{
    struct free_memory f = FREE_MEMORY_UNKNOWN;
    free_in_groups(groups, root, &f);
    assert_int_equal(f.addresses.bytes, -1);
    return f.pages;
}

static int64_t of_meminfo(const char *text, bool strict, const char **ret_limit)
{
    static struct free_memory f;
    f = (struct free_memory)FREE_MEMORY_UNKNOWN;
    free_in_meminfo(text, strict, &f);
    const struct memory_limit *least = free_memory_least(&f);
    *ret_limit = least->name;
    return least->bytes;
}

static void test_meminfo(void **state)
{
    (void)state;
    const char *limit;
    assert_int_equal(of_meminfo("MemTotal:  100 kB\nMemAvailable:   2048 kB\n", false, &limit),
                     2 * MIB);
    assert_string_equal(limit, "on this machine");
    assert_int_equal(of_meminfo("MemTotal:  100 kB\n", false, &limit), -1);
    assert_int_equal(of_meminfo("", true, &limit), -1);
    static const char strict[] =
        "MemAvailable:   4096 kB\nCommitLimit:    8192 kB\nCommitted_AS:   7168 kB\n";
    assert_int_equal(of_meminfo(strict, false, &limit), 4 * MIB);
    assert_int_equal(of_meminfo(strict, true, &limit), 1 * MIB);
    assert_non_null(strstr(limit, "commit limit"));
}

static void test_groups_version_2(void **state)
{
    (void)state;
    const char *root = workdir_open();
    assert_int_equal(of_groups("", root).bytes, -1);
    assert_int_equal(of_groups("0::/\n", root).bytes, -1);
    group_file("job", "memory.max", "104857600\n"); /* 100 MiB */
    group_file("job", "memory.current", "31457280\n");
    group_file("job", "memory.stat",
               "anon 1\nslab_reclaimable 1048576\ninactive_file 10485760\nactive_file 1048576\n");
    group_file("job/step", "memory.max", "max\n");
    group_file("job/step", "memory.current", "9\n");
    group_file("job/tiny", "memory.max", "2097152\n");
    group_file("job/tiny", "memory.current", "1048576\n");
    group_file("job/full", "memory.max", "1048576\n");
    group_file("job/full", "memory.current", "2097152\n");
    struct memory_limit step = of_groups("0::/job/step\n", root);
    assert_int_equal(step.bytes, 82 * MIB); /* cached pages count as free */
    assert_string_equal(step.name, "under memory.max of the control group /job, 100.0 MiB");
    assert_int_equal(of_groups("0::/job/tiny\n", root).bytes, 1 * MIB);
    assert_int_equal(of_groups("0::/job/full", root).bytes, 0);
    assert_int_equal(of_groups("0::/elsewhere/of/the/host\n", root).bytes, -1);
    group_file("job", "memory.high", "52428800\n"); /* 50 MiB: above it, the kernel throttles */
    step = of_groups("0::/job/step\n", root);
    assert_int_equal(step.bytes, 32 * MIB);
    assert_non_null(strstr(step.name, "memory.high"));
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
    assert_int_equal(of_groups("3:cpu,cpuacct:/x\n7:memory:/a:b\n", root).bytes, 5 * MIB);
    assert_int_equal(of_groups("7:memory:/\n", root).bytes, 5 * MIB);
    assert_int_equal(of_groups("7:cpu:/\n", root).bytes, -1);
    /* The limit on memory plus swap counts, too. */
    group_file("memory/a:b", "memory.memsw.limit_in_bytes", "9437184\n");
    group_file("memory/a:b", "memory.memsw.usage_in_bytes", "8388608\n");
    struct memory_limit f = of_groups("7:blkio,memory:/a:b\n", root);
    assert_int_equal(f.bytes, 1 * MIB);
    assert_non_null(strstr(f.name, "memory.memsw.limit_in_bytes of the control group /a:b"));
    workdir_close();
}

static void test_mixed_versions(void **state)
{
    (void)state;
    const char *root = workdir_open();
    group_file("unified/job", "memory.max", "3145728\n");
    group_file("unified/job", "memory.current", "1048576\n");
    assert_int_equal(of_groups("7:memory:/\n0::/job\n", root).bytes, 2 * MIB);
    workdir_close();
}

static void test_limits_of_the_process(void **state)
{
    (void)state;
    static const char status[] =
        "Name:\tx\nVmPeak:\t  99 kB\nVmSize:\t  2048 kB\nVmData:\t 1024 kB\n";
    static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
    for (int i = 0; i < COUNT_OF(limits); i++) {
        struct free_memory f = {.pages.bytes = MIB, .addresses.bytes = -1};
        struct rlimit before, now;
        assert_int_equal(getrlimit((__rlimit_resource_t)limits[i], &before), 0);
        if (before.rlim_cur != RLIM_INFINITY) SKIP("%s", "this process is limited already");
        free_in_process(status, &f);
        assert_int_equal(f.addresses.bytes, -1);
        now = (struct rlimit){(rlim_t)1 << 40, before.rlim_max};
        assert_int_equal(setrlimit((__rlimit_resource_t)limits[i], &now), 0);
        getrlimit((__rlimit_resource_t)limits[i], &now);
        if (now.rlim_cur == RLIM_INFINITY) SKIP("%s", "qemu sets no limit of memory");
        free_in_process(status, &f);
        assert_int_equal(setrlimit((__rlimit_resource_t)limits[i], &before), 0);
        /* kept although the limit of pages is the smaller one */
        assert_int_equal(f.addresses.bytes, (INT64_C(1) << 40) - (2 - i) * MIB);
        assert_int_equal(f.pages.bytes, MIB);
        assert_ptr_equal(free_memory_least(&f), &f.pages);
        assert_string_equal(f.addresses.name, i ? "under RLIMIT_DATA (ulimit -d), 1.0 TiB"
                                                : "under RLIMIT_AS (ulimit -v), 1.0 TiB");
    }
}

static void test_of_this_machine(void **state)
{
    (void)state;
    int64_t free_bytes = free_memory_bytes();
    if (free_bytes < 0) SKIP("this system does not tell its free memory");
    assert_true(free_bytes > MIB && free_bytes < (INT64_C(1) << 50));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meminfo),
        cmocka_unit_test(test_groups_version_2),
        cmocka_unit_test(test_groups_version_1),
        cmocka_unit_test(test_mixed_versions),
        cmocka_unit_test(test_limits_of_the_process),
        cmocka_unit_test(test_of_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
