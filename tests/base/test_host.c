#include "base/host.h"

#include "../support/workdir.h"
#include "base/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Touched pages count; untouched ones do not. */
static void test_anonymous_grows(void **state)
{
    (void)state;
    enum { BYTES = 64 << 20 };
    int64_t before = host_anonymous_bytes();
    assert_true(before > 0);
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_true(host_anonymous_bytes() - before < BYTES / 4);
    memset(p, 1, BYTES);
    int64_t grown = host_anonymous_bytes() - before;
    assert_true(grown >= BYTES && grown < BYTES + BYTES / 4);
    assert_true(host_peak_bytes() >= before + BYTES);
    munmap(p, BYTES);
    assert_true(host_anonymous_bytes() - before < BYTES / 4);
    assert_true(host_peak_bytes() >= before + BYTES); /* the peak does not decrease */
}

/* The time of this process is part of the total; ticks are 10 ms. */
static void test_work_is_counted(void **state)
{
    (void)state;
    struct host_work before = host_work_now(), now;
    assert_true(before.all > 0 && before.own >= 0);
    do now = host_work_now();
    while (now.own - before.own < 0.2);
    assert_true(now.all - before.all >= 0.2 - 0.05);
}

static void write_clock(int processor, const char *name, const char *khz)
{
    char folder[64], path[96];
    snprintf(folder, sizeof folder, "cpu%d/cpufreq", processor);
    assert_int_equal(file_make_dirs(workdir_path(folder)), ST_OK);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    workdir_text(path, khz);
}

/* The mean covers the n fastest processors; the others idle. */
static void test_clock_of_the_fastest(void **state)
{
    (void)state;
    workdir_open();
    const char *root = workdir_path(".");
    write_clock(0, "scaling_cur_freq", "800000\n");
    write_clock(1, "scaling_cur_freq", "3500000\n");
    write_clock(2, "scaling_cur_freq", "3100000\n");
    write_clock(2, "cpuinfo_max_freq", "3900000\n");
    struct host_clock c = host_clock_now(root, "/nowhere", 2);
    assert_true(c.mhz == 3300 && c.most_mhz == 3900);
    assert_true(host_clock_now(root, "/nowhere", 1).mhz == 3500);
    c = host_clock_now(root, "/nowhere", 64); /* more threads than processors */
    assert_true(c.mhz > 2466 && c.mhz < 2467);
    workdir_close();
}

/* A /proc/cpuinfo of `n` processors, of which number 57 is the fastest; returns its size. */
static int make_cpuinfo(char *text, int size, int processors, int flags)
{
    int n = 0;
    for (int i = 0; i < processors; i++) {
        n += snprintf(text + n, (size_t)(size - n),
                      "processor\t: %d\ncpu MHz\t\t: %d.500\nflags\t: ", i,
                      i == 57 ? 4000 : 1000 + i);
        memset(text + n, 'x', (size_t)flags);
        n += flags;
        text[n++] = '\n';
    }
    return n;
}

/* Without cpufreq: lines of /proc/cpuinfo may straddle the end of the read buffer at any
 * position. */
static void test_clock_of_cpuinfo(void **state)
{
    (void)state;
    enum { PROCESSORS = 60, FLAGS = 900, TEXT = PROCESSORS * (2 * FLAGS + 100) };
    char *text = malloc(TEXT);
    workdir_open();
    const char *path = workdir_path("cpuinfo");
    for (int more = 0; more < FLAGS; more += 7) {
        workdir_write(path, text, make_cpuinfo(text, TEXT, PROCESSORS, FLAGS + more));
        struct host_clock c = host_clock_now("/nowhere", path, 1);
        assert_true(c.mhz == 4000.5 && c.most_mhz == -1);
        c = host_clock_now("/nowhere", path, PROCESSORS);
        double mean = 1029.5 + 0.5 + (4000. - 1057) / PROCESSORS; /* no processor is missed */
        assert_true(c.mhz > mean - 0.01 && c.mhz < mean + 0.01);
    }
    assert_true(host_clock_now("/nowhere", "/nowhere", 2).mhz == -1);
    workdir_close();
    free(text);
}

static void test_others(void **state)
{
    (void)state;
    struct host_work start = {100, 10}, end = {103, 11}, unknown = {-1, 11};
    assert_true(host_others(start, end, 4) == 0.5); /* 2 of 4 seconds */
    /* all of the time was this process's */
    assert_true(host_others(start, (struct host_work){101, 12}, 1) == 0);
    assert_true(host_others(start, (struct host_work){1e6, 11}, 1) ==
                (double)sysconf(_SC_NPROCESSORS_ONLN));
    assert_true(isnan(host_others(start, end, 0.4))); /* interval too short */
    assert_true(isnan(host_others(start, unknown, 4)) && isnan(host_others(unknown, end, 4)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_anonymous_grows), cmocka_unit_test(test_work_is_counted),
        cmocka_unit_test(test_clock_of_the_fastest), cmocka_unit_test(test_clock_of_cpuinfo),
        cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
