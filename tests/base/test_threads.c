/* test: alone; it compares the times of threads */
#include "base/threads.h"

#include "../support/capture.h"
#include "../support/workdir.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <omp.h>
#include <string.h>
#include <unistd.h>

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
    if (!omp_get_num_places()) assert_int_equal(threads_allowed(), available);
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

    /* version 2: the minimum of the group and its ancestors; fractions are rounded down, but not to
     * 0 */
    group_file("job", "cpu.max", "650000 100000\n");
    group_file("job/step", "cpu.max", "max 100000\n");
    group_file("job/tiny", "cpu.max", "50000 100000\n");
    assert_int_equal(threads_group_limit("0::/job/step\n", root), 6);
    assert_int_equal(threads_group_limit("0::/job/tiny\n", root), 1);
    assert_int_equal(threads_group_limit("0::/job", root), 6);
    assert_int_equal(threads_group_limit("0::/elsewhere/unseen\n", root), 0);

    /* version 1: a separate mount; -1 means no limit */
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

static void siblings(int processor, const char *list)
{
    char folder[64];
    snprintf(folder, sizeof folder, "cpu%d/topology", processor);
    group_file(folder, "thread_siblings_list", list);
}

/* One thread per core of the mask, for any numbering of hardware threads. */
static void test_cores(void **state)
{
    (void)state;
    const char *root = workdir_open();
    const int all[] = {0, 1, 2, 3, 4, 5, 6, 7}, some[] = {1, 2, 5}, far[] = {100, 101};
    assert_int_equal(threads_cores(all, 8, root), 8); /* topology unknown */
    for (int i = 0; i < 8; i++)
        siblings(i, i % 4 == 0 ? "0,4\n" : i % 4 == 1 ? "1,5\n" : i % 4 == 2 ? "2,6" : "3,7\n");
    assert_int_equal(threads_cores(all, 8, root), 4);
    assert_int_equal(threads_cores(some, 3, root), 2);
    assert_int_equal(threads_cores(some, 0, root), 0);
    /* four threads per core */
    for (int i = 0; i < 8; i++) siblings(i, i < 4 ? "0-3\n" : "4-5,6-7\n");
    assert_int_equal(threads_cores(all, 8, root), 2);
    assert_int_equal(threads_cores(some, 3, root), 2);
    siblings(100, "10-11,100\n"); /* 101 is not in the list */
    siblings(101, "10-11,101\n");
    assert_int_equal(threads_cores(far, 2, root), 2);
    workdir_close();
}

/* The line of all processors does not count, nor does time without work. */
static void test_other_programs_take_cores(void **state)
{
    (void)state;
    static const char stat[] = "cpu  1 0 0 99 9 0 0 0 0 0\n"
                               "cpu0 100 20 30 5000 60 7 8 9 0 0\n"
                               "cpu1 1000 0 0 7000 0 0 0 0 0 0\n"
                               "cpu11 400 0 0 0 0 0 0 0 0 0\n"
                               "intr 1 2 3\n";
    const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    const int processor[] = {0, 1};
    assert_float_equal(threads_worked(stat, processor, 1), 174 * tick, 1e-9);
    assert_float_equal(threads_worked(stat, processor, 2), 1174 * tick, 1e-9);
    assert_float_equal(threads_worked("", processor, 2), 0, 1e-9);
    assert_int_equal(threads_beside(2, 2, 0), 2);
    assert_int_equal(threads_beside(2, 2, 0.4), 2);
    assert_int_equal(threads_beside(2, 2, 0.9), 1);
    assert_int_equal(threads_beside(2, 2, 2), 1);
    assert_int_equal(threads_beside(16, 16, 1), 15);
    assert_int_equal(threads_beside(8, 16, 3), 8); /* second hardware threads are free */
    assert_int_equal(threads_beside(4, 64, 10), 4);
    int64_t n = threads_free();
    assert_true(n >= 1 && n <= threads_available());
}

static void test_too_many_threads_warn(void **state)
{
    (void)state;
    char words[64];
    int64_t available = threads_available();
    snprintf(words, sizeof words, "%d threads on %d cores", (int)available + 1, (int)available);
    log_set_level(LOG_WARNING);
    threads_set(0);
    stderr_capture();
    threads_set(available);
    threads_set(0);
    assert_string_equal(stderr_release(), "");
    stderr_capture();
    threads_set(available + 1);
    threads_set(available + 1); /* warns only once */
    const char *said = stderr_release();
    assert_non_null(strstr(said, words));
    assert_null(strstr(strstr(said, words) + 1, words));
    assert_int_equal(threads_count(), available + 1);
}

/* Three units of work for one thread and one for the other: the busiest thread has 1.5 times the
 * mean. */
static void test_thread_watch(void **state)
{
    (void)state;
    enum { PART_NS = 3000000 };
    struct threads_span span[3];
    struct threads_watch w = {.span = span, .capacity = COUNT_OF(span)};
    threads_set(2);
    for (int watched = 0; watched < 2; watched++) {
        threads_watch(watched ? &w : NULL);
#pragma omp parallel num_threads(2)
        {
            int64_t begun = threads_begin();
            int64_t end = clock_ns() + PART_NS * (omp_get_thread_num() ? 1 : 3);
            while (clock_ns() < end) {}
            threads_end(begun);
        }
        threads_joined();
        if (!watched) threads_unseen();
    }
    assert_int_equal(w.regions, 1);
    assert_true(w.busy_ns >= 4 * PART_NS && w.busiest_ns >= 3 * PART_NS);
    assert_true(w.busiest_ns < w.busy_ns);
    assert_int_equal(w.spans, 2);
    assert_true(span[0].thread == 0 && span[1].thread == 1);
    assert_int_equal(span[0].end_ns - span[0].start_ns + span[1].end_ns - span[1].start_ns,
                     w.busy_ns);
    assert_false(w.unseen);
    threads_unseen();
    assert_true(w.unseen);
    threads_watch(NULL);
    assert_int_equal(threads_begin(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),          cmocka_unit_test(test_group_limits),
        cmocka_unit_test(test_cores),        cmocka_unit_test(test_other_programs_take_cores),
        cmocka_unit_test(test_thread_watch), cmocka_unit_test(test_too_many_threads_warn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
