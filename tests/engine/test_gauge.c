/* Telemetry of a simulated device during work.
 * test: alone; it samples at intervals */
#include "engine/gauge.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/threads.h"

#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The device: its sample, the milliseconds that a query takes, and the number of queries. */
static struct device_sample sample;
static atomic_int queries, query_ms;
static bool is_silent;

static enum status query(void *ctx, struct device_sample *ret)
{
    (void)ctx;
    if (is_silent) return (fail)(ST_UNSUPPORTED, "no gauges here");
    atomic_fetch_add(&queries, 1);
    if (query_ms) poll(NULL, 0, query_ms);
    *ret = sample;
    return ST_OK;
}

static const struct backend_telemetry telemetry = {.sample = query};
static const struct backend device = {.name = "device", .telemetry = &telemetry},
                            without = {.name = "without"};

static int set_up(void **state)
{
    (void)state;
    sample = (struct device_sample){
        .utilization = 50,
        .clock_mhz = 1000,
        .clock_max_mhz = 2000,
        .power_w = 100,
        .power_limit_w = 700,
        .energy_j = -1,
        .memory_bytes = 1e9,
        .temperature_c = 40,
    };
    queries = query_ms = 0;
    is_silent = false;
    return 0;
}

static struct gauge *open_gauge(int64_t interval_ms)
{
    struct gauge *g = NULL;
    assert_int_equal(gauge_open(&g, &device, NULL, interval_ms), ST_OK);
    return g;
}

static void wait_ms(int ms)
{
    poll(NULL, 0, ms);
}

static void near(double x, double wanted, double most)
{
    if (!(fabs(x - wanted) <= most)) fail_msg("%g instead of %g", x, wanted);
}

/* Twice as long at 1000 MHz as at 1600: means are weighted by time, not by samples. */
static void test_means_are_over_time(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    gauge_work(g, true);
    wait_ms(200);
    gauge_work(g, true);
    sample.clock_mhz = 1600;
    sample.throttle = 1 << THROTTLE_POWER | 1 << THROTTLE_USER;
    sample.other_programs = 1;
    sample.other_pid = 31;
    wait_ms(100);
    gauge_work(g, false);
    sample.clock_mhz = 0;
    wait_ms(50);
    gauge_work(g, true); /* the time before this call is not work */
    struct gauge_summary s = gauge_summarize(g);
    near(s.seconds, 0.3, 0.1);
    double slow = s.seconds > 0 ? s.throttled : 0;
    near(slow, 1. / 3, 0.1);
    near(s.value[GAUGE_CLOCK].mean, 1000 + 600 * slow, 1);
    assert_true(s.value[GAUGE_CLOCK].min == 1000 && s.value[GAUGE_CLOCK].max == 1600);
    assert_int_equal(s.reasons, 2);
    assert_string_equal(s.by[0].name, "power limit");
    assert_string_equal(s.by[1].name, "set clock");
    near(s.by[0].x, slow, 1e-9);
    near(s.by[1].x, slow, 1e-9);
    near(s.others, slow, 1e-9);
    assert_int_equal(s.other, 31);
    assert_int_equal(s.samples, 2);
    near(s.energy_j, 100 * s.seconds, 0.1); /* without a counter: power times time */
    struct str words = {0};
    gauge_print(&s, &words);
    assert_string_equal(str_text(&words), ""); /* too few samples to show */
    s.samples = GAUGE_ENOUGH;
    gauge_print(&s, &words);
    assert_non_null(strstr(str_text(&words), "50 % busy, 1"));
    assert_non_null(strstr(str_text(&words), " of 2000 MHz, 100 W; slowed in "));
    assert_non_null(strstr(str_text(&words), "by power limit"));
    assert_null(strstr(str_text(&words), "set clock"));
    str_release(&words);
    gauge_close(g);
}

/* A summary of less than a few intervals is not shown. */
static void test_too_few_samples(void **state)
{
    (void)state;
    struct gauge_summary s = {.samples = 3, .seconds = 0.02, .interval_ms = 100};
    assert_false(gauge_is_enough(&s));
    s.seconds = 0.3;
    assert_true(gauge_is_enough(&s));
    s.samples = 2;
    assert_false(gauge_is_enough(&s));
}

static void test_the_live_line(void **state)
{
    (void)state;
    char words[64];
    struct gauge *g = open_gauge(0);
    gauge_print_last(g, words, sizeof words);
    assert_string_equal(words, "  50 %  1000 MHz  100 W");
    gauge_close(g);
}

/* A clock limit set by a user is reported, and does not count as throttled. */
static void test_a_set_clock_is_not_slowed(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    sample.throttle = 1 << THROTTLE_USER;
    gauge_work(g, true);
    wait_ms(5);
    gauge_work(g, false);
    struct gauge_summary s = gauge_summarize(g);
    assert_true(s.throttled == 0 && s.reasons == 1 && s.by[0].x == 1);
    gauge_close(g);
}

static void test_energy_by_the_devices_counter(void **state)
{
    (void)state;
    sample.energy_j = 5000;
    struct gauge *g = open_gauge(0);
    gauge_work(g, true);
    wait_ms(20);
    sample.energy_j = 5012;
    gauge_work(g, true);
    sample.energy_j = 3; /* the counter restarted: power times time for this interval */
    wait_ms(20);
    gauge_work(g, true);
    sample.energy_j = 10;
    gauge_work(g, false);
    struct gauge_summary s = gauge_summarize(g);
    near(s.energy_j, 12 + 100 * 0.02 + 7, 1.5);
    near(s.value[GAUGE_POWER].mean, s.energy_j / s.seconds, 1e-6);
    gauge_close(g);
}

static void test_unknown_values_stay_unknown(void **state)
{
    (void)state;
    sample = sample_unknown;
    sample.clock_mhz = 1500;
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    gauge_work(g, true);
    wait_ms(5);
    gauge_work(g, true);
    sample.temperature_c = 60; /* known only for a part of the time */
    gauge_work(g, false);
    struct gauge_summary s = gauge_summarize(g);
    near(s.value[GAUGE_CLOCK].mean, 1500, 1e-6);
    assert_true(isnan(s.clock_max_mhz));
    assert_true(isnan(s.value[GAUGE_POWER].mean) && isnan(s.energy_j) && isnan(s.throttled));
    near(s.value[GAUGE_TEMPERATURE].mean, 60, 1e-6);
    assert_true(s.value[GAUGE_TEMPERATURE].min == 60);
    for (int i = 0; i < 3; i++) assert_true(gauge_take(g, true, &r));
    assert_true(isnan(r.value[GAUGE_MEMORY]) && isnan(r.throttled) && r.steady);
    char words[64];
    gauge_print_last(g, words, sizeof words);
    assert_string_equal(words, "  1500 MHz");
    gauge_close(g);
}

/* A reading covers either work or other time; readings are in order, and none is lost. */
static void test_readings(void **state)
{
    (void)state;
    int64_t from_ns = clock_ns();
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    double ms = 0;
    gauge_at(g, 7);
    gauge_work(g, true);
    gauge_at(g, 9);
    sample.throttle = 1 << THROTTLE_HEAT;
    wait_ms(10);
    gauge_work(g, false);
    for (int i = 0; gauge_take(g, true, &r); i++, ms += r.ms) {
        assert_int_equal(r.iter, i ? 9 : 7);
        assert_int_equal(r.steady, i == 1);
        assert_true(r.throttled == i && r.throttle == (i ? 1 << THROTTLE_HEAT : 0));
        assert_true(i < 2);
    }
    assert_true(ms >= 10 && ms <= clock_ms(from_ns, clock_ns()));
    gauge_close(g);
}

/* An endless run: each block's readings cover twice the time of the previous block's. */
static void test_readings_become_fewer(void **state)
{
    (void)state;
    enum { SAMPLES = 8 * GAUGE_READINGS };
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    int readings = 0;
    for (int i = 0; i < SAMPLES; i++) {
        gauge_work(g, true);
        while (gauge_take(g, false, &r)) readings++;
    }
    near(readings, GAUGE_READINGS * (1 + 1 + 1 + 1. / 8), 2);
    /* Work and other time do not mix at a change. */
    gauge_work(g, false);
    while (gauge_take(g, true, &r)) {}
    for (int i = 0; i < 6; i++) {
        sample.clock_mhz = i % 2 ? 1500 : 300; /* of the previous interval: other time, then work */
        gauge_work(g, i % 2 == 0);
        while (gauge_take(g, false, &r)) near(r.value[GAUGE_CLOCK], r.steady ? 1500 : 300, 1e-6);
    }
    gauge_close(g);
}

/* Readings that are not taken and no longer fit are merged into later ones. */
static void test_readings_that_are_not_taken(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    int64_t from_ns = clock_ns();
    double ms = 0;
    for (int i = 0; i < 500; i++) gauge_work(g, true);
    wait_ms(20);
    gauge_work(g, true);
    int64_t to_ns = clock_ns();
    int readings = 0;
    for (; gauge_take(g, true, &r); readings++) ms += r.ms;
    assert_true(readings > 1 && readings < 200);
    near(ms, clock_ms(from_ns, to_ns), 5);
    gauge_close(g);
}

/* If no readings are taken for a long time, readings of work contain nothing of the other time,
 * even after so many changes that they no longer fit. */
static void test_work_and_other_time_stay_apart(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    int working = 0;
    sample.clock_mhz = 300;
    for (int i = 0; i < 200; i++) gauge_work(g, false);
    gauge_work(g, true);
    sample.clock_mhz = 1500;
    for (int i = 0; i < 5; i++) gauge_work(g, true);
    for (; gauge_take(g, true, &r); working += r.steady)
        near(r.value[GAUGE_CLOCK], r.steady ? 1500 : 300, 1e-6);
    assert_true(working > 0);
    for (int i = 0; i < 300; i++) {
        gauge_work(g, i % 3 == 0);
        sample.clock_mhz = i % 3 ? 300 : 1500;
    }
    while (gauge_take(g, true, &r))
        if (r.steady) near(r.value[GAUGE_CLOCK], 1500, 1e-6);
    gauge_close(g);
}

/* The thread samples at its interval, and ends at once on request. */
static void test_a_thread_samples(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(10);
    gauge_work(g, true);
    for (int i = 0; i < 500 && queries < 7; i++) wait_ms(10);
    gauge_work(g, false);
    assert_true(gauge_summarize(g).samples >= 5);
    gauge_close(g);
    int before = queries;
    wait_ms(30);
    assert_int_equal(queries, before);
    g = open_gauge(3600000);
    wait_ms(100); /* the thread waits by now */
    int64_t from_ns = clock_ns();
    gauge_close(g);
    assert_true(clock_ms(from_ns, clock_ns()) < 1000);
}

/* The working thread does not wait for a slow device. */
static void test_no_caller_waits_for_a_sample(void **state)
{
    (void)state;
    enum { SLOW_MS = 400 };
    struct gauge *g = open_gauge(1);
    struct gauge_reading r;
    char text[64];
    query_ms = SLOW_MS;
    int before = queries;
    while (queries < before + 2) wait_ms(1); /* the second slow query has begun */
    int64_t from_ns = clock_ns();
    for (int i = 0; i < 1000; i++) {
        gauge_at(g, i);
        gauge_print_last(g, text, sizeof text);
        (void)gauge_take(g, false, &r);
    }
    assert_true(clock_ms(from_ns, clock_ns()) < SLOW_MS / 2);
    assert_true(gauge_summarize(g).sample_ms > 1);
    gauge_close(g);
}

static void test_missing_telemetry_has_a_reason(void **state)
{
    (void)state;
    struct gauge *g = NULL;
    assert_int_equal(gauge_open(&g, &without, NULL, 1), ST_UNSUPPORTED);
    assert_null(g);
    is_silent = true;
    assert_int_equal(gauge_open(&g, &device, NULL, 1), ST_UNSUPPORTED);
    assert_null(g);
    assert_string_equal(fail_message(), "no gauges here");
    gauge_close(g);
}

/* If queries fail, the last sample covers the time until the next one. */
static void test_failed_queries(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    gauge_work(g, true);
    is_silent = true;
    wait_ms(20);
    gauge_work(g, true);
    assert_true(gauge_summarize(g).seconds < 0.01);
    is_silent = false;
    gauge_work(g, true);
    assert_true(gauge_summarize(g).seconds >= 0.02);
    gauge_close(g);
}

/* Telemetry of the processor that runs this test. */
static void test_the_cpu(void **state)
{
    (void)state;
    const struct backend *cpu = backend_find("cpu");
    void *ctx;
    struct device_sample s;
    threads_set(1);
    assert_int_equal(cpu->open(0, &ctx), ST_OK);
    assert_int_equal(cpu->telemetry->sample(ctx, &s), ST_OK);
    assert_true(s.utilization == -1 && s.memory_bytes > 0 && s.power_w == -1);
    volatile double x = 1;
    for (int64_t from_ns = clock_ns(); clock_ms(from_ns, clock_ns()) < 200;) x = x * 1.0000001;
    assert_int_equal(cpu->telemetry->sample(ctx, &s), ST_OK);
    assert_true(s.utilization > 1 && s.utilization <= 100);
    wait_ms(200);
    assert_int_equal(cpu->telemetry->sample(ctx, &s), ST_OK);
    assert_true(s.utilization < 10);
    cpu->close(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(test_means_are_over_time),
        TEST(test_too_few_samples),
        TEST(test_the_live_line),
        TEST(test_a_set_clock_is_not_slowed),
        TEST(test_energy_by_the_devices_counter),
        TEST(test_unknown_values_stay_unknown),
        TEST(test_readings),
        TEST(test_readings_become_fewer),
        TEST(test_readings_that_are_not_taken),
        TEST(test_work_and_other_time_stay_apart),
        TEST(test_a_thread_samples),
        TEST(test_no_caller_waits_for_a_sample),
        TEST(test_missing_telemetry_has_a_reason),
        TEST(test_failed_queries),
        TEST(test_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
