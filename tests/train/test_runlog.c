#include "train/runlog.h"

#include "backend/sample.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "engine/gauge.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;
static struct runlog runlog;

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static const char *log_path(void)
{
    return workdir_path("log.jsonl");
}

static const char *read_log(void)
{
    static char *text;
    int64_t bytes;
    assert_int_equal(file_read(log_path(), &arena, &text, &bytes), ST_OK);
    return text;
}

static void add_step(int64_t iter)
{
    struct run_step s = {.iter = iter,
                         .loss = 4.17479753f,
                         .lr = 1e-3,
                         .grad_norm = 0.1f,
                         .ms = 12.5,
                         .tokens_per_s = 16384};
    assert_int_equal(runlog_step(&runlog, &s), ST_OK);
}

static void add_eval(int64_t iter)
{
    struct run_eval e = {.iter = iter, .train_loss = 2.5, .val_loss = 1.0 / 3};
    assert_int_equal(runlog_eval(&runlog, &e), ST_OK);
}

static void open_at(int64_t iter)
{
    assert_int_equal(runlog_open(&runlog, log_path(), iter), ST_OK);
}

/* Steps 0 ... n-1, with an evaluation before every fourth. */
static void write_run(int64_t first, int64_t n)
{
    open_at(first);
    for (int64_t i = first; i < n; i++) {
        if (i % 4 == 0) add_eval(i);
        add_step(i);
    }
    runlog_close(&runlog);
}

static void test_lines(void **state)
{
    (void)state;
    open_at(0);
    add_eval(0);
    add_step(0);
    runlog_close(&runlog);
    assert_string_equal(
        read_log(),
        "{\"v\":1,\"kind\":\"eval\",\"iter\":0,\"train_loss\":2.5,\"val_loss\":0.333333333}\n"
        "{\"v\":1,\"kind\":\"step\",\"iter\":0,\"loss\":4.17479753,\"lr\":0.001,"
        "\"grad_norm\":0.100000001,\"ms\":12.5,\"tokens_per_s\":16384}\n");
}

static void add_sample(int64_t iter)
{
    struct gauge_reading r = {.iter = iter,
                              .ms = 500.25,
                              .steady = true,
                              .value = {97, 1755, 612.345, 81559158784, 61, 45, 95, 22, 71},
                              .clock_max_mhz = 1980,
                              .power_limit_w = 700,
                              .throttled = 0.5,
                              .throttle = 1 << THROTTLE_POWER | 1 << THROTTLE_USER};
    assert_int_equal(runlog_sample(&runlog, &r), ST_OK);
}

static void test_samples(void **state)
{
    (void)state;
    struct gauge_reading bare = {
        .iter = 3, .ms = 1, .value = {NAN, 2600, NAN, 0, NAN, NAN, NAN, NAN, NAN}};
    bare.clock_max_mhz = bare.power_limit_w = bare.throttled = NAN;
    open_at(0);
    add_sample(2);
    assert_int_equal(runlog_sample(&runlog, &bare), ST_OK);
    runlog_close(&runlog);
    assert_string_equal(
        read_log(),
        "{\"v\":1,\"kind\":\"sample\",\"iter\":2,\"ms\":500.25,\"steady\":true,"
        "\"utilization\":97,\"clock_mhz\":1755,\"power_w\":612.345,\"memory_bytes\":81559158784,"
        "\"temperature_c\":61,\"memory_utilization\":45,\"sm_active\":95,\"tensor_active\":22,"
        "\"dram_active\":71,\"clock_max_mhz\":1980,\"power_limit_w\":700,\"throttled\":0.5,"
        "\"throttle\":[\"power limit\",\"set clock\"]}\n"
        "{\"v\":1,\"kind\":\"sample\",\"iter\":3,\"ms\":1,\"steady\":false,"
        "\"clock_mhz\":2600,\"memory_bytes\":0}\n");
}

/* After resuming at iteration 2 the log has no samples of repeated iterations. */
static void test_samples_are_removed_with_their_steps(void **state)
{
    (void)state;
    open_at(0);
    for (int i = 0; i < 4; i++) {
        add_step(i);
        add_sample(i);
    }
    runlog_close(&runlog);
    open_at(2);
    runlog_close(&runlog);
    assert_non_null(strstr(read_log(), "\"kind\":\"sample\",\"iter\":1,"));
    assert_null(strstr(read_log(), "\"iter\":2,"));
}

static void test_the_longest_sample_fits(void **state)
{
    (void)state;
    struct gauge_reading r = {.iter = INT64_MIN, .ms = 1e12, .throttle = (1 << THROTTLE_COUNT) - 1};
    for (int i = 0; i < GAUGE_VALUES; i++) r.value[i] = 1.2345678e18;
    r.clock_max_mhz = r.power_limit_w = r.throttled = 1.23456789e-300;
    open_at(0);
    assert_int_equal(runlog_sample(&runlog, &r), ST_OK);
    runlog_close(&runlog);
    assert_non_null(strstr(read_log(), "\"set clock\"]}\n"));
}

static void test_losses_come_back_exactly(void **state)
{
    (void)state;
    open_at(0);
    float x = 0.1f;
    for (int i = 0; i < 1000; i++, x *= 1.0137f) {
        struct run_step s = {.iter = i, .loss = x};
        assert_int_equal(runlog_step(&runlog, &s), ST_OK);
    }
    runlog_close(&runlog);
    const char *line = read_log();
    x = 0.1f;
    for (int i = 0; i < 1000; i++, x *= 1.0137f) {
        assert_true((float)atof(strstr(line, "\"loss\":") + 7) == x);
        line = strchr(line, '\n') + 1;
    }
}

static void test_nan_is_null(void **state)
{
    (void)state;
    open_at(0);
    struct run_step s = {.loss = NAN, .grad_norm = INFINITY, .ms = -INFINITY};
    assert_int_equal(runlog_step(&runlog, &s), ST_OK);
    runlog_close(&runlog);
    json_t *o = json_loads(read_log(), 0, NULL);
    assert_true(json_is_null(json_object_get(o, "loss")));
    assert_true(json_is_null(json_object_get(o, "grad_norm")));
    assert_true(json_is_null(json_object_get(o, "ms")));
    assert_true(json_is_number(json_object_get(o, "lr")));
    json_decref(o);
}

/* plan_flops and plan_bytes are in the line only if both are known. */
static void test_shares_of_the_plan(void **state)
{
    (void)state;
    struct run_step s = {.iter = 1, .plan_flops = 0.25, .plan_bytes = 0.75};
    open_at(0);
    assert_int_equal(runlog_step(&runlog, &s), ST_OK);
    s.plan_bytes = 0;
    assert_int_equal(runlog_step(&runlog, &s), ST_OK);
    runlog_close(&runlog);
    const char *first = strstr(read_log(), ",\"plan_flops\":0.25,\"plan_bytes\":0.75}\n");
    assert_non_null(first);
    assert_null(strstr(strchr(first, '\n'), "plan_"));
}

static void test_longest_line_fits(void **state)
{
    (void)state;
    double x = -1.23456789e-300;
    struct run_step s = {INT64_MIN, x, x, x, x, x, -x, -x, -x};
    open_at(0);
    assert_int_equal(runlog_step(&runlog, &s), ST_OK);
    runlog_close(&runlog);
    assert_non_null(strstr(read_log(), "}\n"));
}

static void expect_resumes(const char *whole, int64_t cut)
{
    int64_t complete = 0; /* steps in the truncated log */
    for (const char *p = whole; (p = strstr(p, "\"kind\":\"step\"")) != NULL; p++)
        complete += strchr(p, '\n') < whole + cut;
    workdir_write(log_path(), whole, cut);
    write_run(complete / 4 * 4, 12); /* a checkpoint every fourth step */
    assert_string_equal(read_log(), whole);
}

/* A log that is truncated anywhere and then resumed equals the log of an uninterrupted run. */
static void test_resume_after_truncation_anywhere(void **state)
{
    (void)state;
    write_run(0, 12);
    const char *whole = arena_strdup(&arena, read_log());
    expect_resumes(whole, 0);
    for (const char *line = whole, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const int64_t cuts[] = {line + 1 - whole, line + (end - line) / 2 - whole, end - 1 - whole,
                                end - whole, end + 1 - whole};
        for (int i = 0; i < COUNT_OF(cuts); i++) expect_resumes(whole, cuts[i]);
    }
}

/* Resuming at 3: the line of step 2 lost its newline and must not swallow the next. */
static void test_lost_newline_drops_its_line(void **state)
{
    (void)state;
    write_run(0, 3);
    workdir_truncate(log_path(), workdir_size(log_path()) - 1);
    open_at(3);
    add_step(3);
    runlog_close(&runlog);
    assert_null(strstr(read_log(), "\"iter\":2,"));
    assert_non_null(strstr(read_log(), "}\n{\"v\":1,\"kind\":\"step\",\"iter\":3,"));
}

static void test_new_run_starts_an_empty_log(void **state)
{
    (void)state;
    write_run(0, 8);
    write_run(0, 2);
    const char *text = read_log();
    assert_null(strstr(text, "\"iter\":2"));
    assert_non_null(strstr(text, "\"iter\":1,"));
}

static void test_corrupt_lines_are_dropped(void **state)
{
    (void)state;
    write_run(0, 4);
    const char *before = read_log();
    workdir_flip(log_path(), strchr(before, '\n') + 1 - before + 3, 6);
    workdir_flip(log_path(), 0, 2); /* { becomes no brace */
    open_at(4);
    runlog_close(&runlog);
    const char *text = read_log();
    assert_null(strstr(text, "\"kind\":\"eval\""));
    assert_int_equal(text[0], '{');
    assert_non_null(strstr(text, "\"iter\":3,"));
}

static int stats_failing;

static bool stat_fails(void)
{
    if (stats_failing == 0) return false;
    stats_failing--;
    errno = EIO;
    return true;
}

/* These replace the C library's in this program. */
int stat(const char *path, struct stat *info)
{
    return stat_fails() ? -1 : fstatat(AT_FDCWD, path, info, 0);
}

int lstat(const char *path, struct stat *info)
{
    return stat_fails() ? -1 : fstatat(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}

int fstatat(int at, const char *path, struct stat *info, int flags)
{
    if (stat_fails()) return -1;
    return ((int (*)(int, const char *, struct stat *, int))dlsym(RTLD_NEXT, "fstatat"))(
        at, path, info, flags);
}

/* A failed stat does not mean that the log is absent; otherwise lines would be written twice. */
static void test_failed_stat_doubles_no_line(void **state)
{
    (void)state;
    write_run(0, 4);
    stats_failing = 1;
    open_at(2);
    runlog_close(&runlog);
    assert_null(strstr(read_log(), "\"iter\":2,"));
    write_run(2, 4);
    const char *whole = arena_strdup(&arena, read_log());
    stats_failing = 1000;
    enum status st = runlog_open(&runlog, log_path(), 2);
    stats_failing = 0;
    assert_int_equal(st, ST_IO);
    assert_string_equal(read_log(), whole);
}

/* A limit on the file size simulates a full disk. */
static void test_full_disk_is_an_error(void **state)
{
    (void)state;
    open_at(0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct run_step s = {.iter = 0};
    enum status st = runlog_step(&runlog, &s);
    if (st == ST_OK) st = runlog_step(&runlog, &s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ST_IO);
    assert_non_null(strstr(fail_message(), "log.jsonl: File too large"));
    runlog_close(&runlog);
    assert_int_equal(runlog_open(&runlog, workdir_path("none/log.jsonl"), 0), ST_ABSENT);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_lines),
        TEST(test_samples),
        TEST(test_samples_are_removed_with_their_steps),
        TEST(test_the_longest_sample_fits),
        TEST(test_losses_come_back_exactly),
        TEST(test_nan_is_null),
        TEST(test_shares_of_the_plan),
        TEST(test_longest_line_fits),
        TEST(test_resume_after_truncation_anywhere),
        TEST(test_lost_newline_drops_its_line),
        TEST(test_new_run_starts_an_empty_log),
        TEST(test_corrupt_lines_are_dropped),
        TEST(test_failed_stat_doubles_no_line),
        TEST(test_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
