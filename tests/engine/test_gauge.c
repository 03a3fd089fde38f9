/* What a device says of itself beside the work: on devices whose figures are written down here.
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

/* The device: what it says, for how long it thinks, and how often it was asked. */
static struct device_sample says;
static atomic_int asked, thinks_ms;
static bool is_mute;

static enum status ask(void *ctx, struct device_sample *ret)
{
    (void)ctx;
    if (is_mute) return (fail)(ST_UNSUPPORTED, "no gauges here");
    atomic_fetch_add(&asked, 1);
    if (thinks_ms) poll(NULL, 0, thinks_ms);
    *ret = says;
    return ST_OK;
}

static const struct backend_telemetry telemetry = {.sample = ask};
static const struct backend device = {.name = "device", .telemetry = &telemetry},
                            without = {.name = "without"};

static int set_up(void **state)
{
    (void)state;
    says = (struct device_sample){
        .utilization = 50,
        .clock_mhz = 1000,
        .clock_max_mhz = 2000,
        .power_w = 100,
        .power_limit_w = 700,
        .energy_j = -1,
        .memory_bytes = 1e9,
        .temperature_c = 40,
    };
    asked = thinks_ms = 0;
    is_mute = false;
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

/* Twice as long at 1000 MHz as at 1600: the mean is one of time, not of samples. */
static void test_means_are_of_time(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    gauge_work(g, true);
    wait_ms(200);
    gauge_work(g, true);
    says.clock_mhz = 1600;
    says.throttle = 1 << THROTTLE_POWER | 1 << THROTTLE_SET;
    wait_ms(100);
    gauge_work(g, false);
    says.clock_mhz = 0;
    wait_ms(50);
    gauge_work(g, true); /* what was before it is nobody's work */
    struct gauge_summary s = gauge_summarize(g);
    near(s.seconds, 0.3, 0.1);
    double slow = s.seconds > 0 ? s.throttled : 0;
    near(slow, 1. / 3, 0.1);
    near(s.value[GAUGE_CLOCK].mean, 1000 + 600 * slow, 1);
    assert_true(s.value[GAUGE_CLOCK].min == 1000 && s.value[GAUGE_CLOCK].max == 1600);
    near(s.by[THROTTLE_POWER], slow, 1e-9);
    near(s.by[THROTTLE_SET], slow, 1e-9);
    assert_true(s.by[THROTTLE_HEAT] == 0);
    assert_int_equal(s.samples, 2);
    near(s.energy_j, 100 * s.seconds, 0.1); /* it counts none: power times time */
    struct str words = {0};
    gauge_print(&s, &words);
    assert_non_null(strstr(str_text(&words), "50 % busy, 1"));
    assert_non_null(strstr(str_text(&words), " of 2000 MHz, 100 W; slowed in "));
    assert_non_null(strstr(str_text(&words), "by power limit"));
    assert_null(strstr(str_text(&words), "set clock"));
    str_release(&words);
    gauge_close(g);
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

/* A clock that somebody chose is told, and does not count as slowed. */
static void test_a_set_clock_is_not_slowed(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    says.throttle = 1 << THROTTLE_SET;
    gauge_work(g, true);
    wait_ms(5);
    gauge_work(g, false);
    struct gauge_summary s = gauge_summarize(g);
    assert_true(s.throttled == 0 && s.by[THROTTLE_SET] == 1);
    gauge_close(g);
}

static void test_energy_is_the_devices_own(void **state)
{
    (void)state;
    says.energy_j = 5000;
    struct gauge *g = open_gauge(0);
    gauge_work(g, true);
    wait_ms(20);
    says.energy_j = 5012;
    gauge_work(g, true);
    says.energy_j = 3; /* begun anew: that time is of its power */
    wait_ms(20);
    gauge_work(g, true);
    says.energy_j = 10;
    gauge_work(g, false);
    struct gauge_summary s = gauge_summarize(g);
    near(s.energy_j, 12 + 100 * 0.02 + 7, 1.5);
    near(s.value[GAUGE_POWER].mean, s.energy_j / s.seconds, 1e-6);
    gauge_close(g);
}

static void test_what_is_not_known_stays_so(void **state)
{
    (void)state;
    says = sample_unknown;
    says.clock_mhz = 1500;
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    gauge_work(g, true);
    wait_ms(5);
    gauge_work(g, true);
    says.temperature_c = 60; /* of a part of the time alone */
    gauge_work(g, false);
    struct gauge_summary s = gauge_summarize(g);
    near(s.value[GAUGE_CLOCK].mean, 1500, 1e-6);
    assert_true(s.clock_max_mhz == -1);
    assert_true(s.value[GAUGE_POWER].mean == -1 && s.energy_j == -1 && s.throttled == -1);
    near(s.value[GAUGE_TEMPERATURE].mean, 60, 1e-6);
    assert_true(s.value[GAUGE_TEMPERATURE].min == 60);
    for (int i = 0; i < 3; i++) assert_true(gauge_take(g, true, &r));
    assert_true(r.value[GAUGE_MEMORY] == -1 && r.throttled == -1 && r.working);
    char words[64];
    gauge_print_last(g, words, sizeof words);
    assert_string_equal(words, "  1500 MHz");
    gauge_close(g);
}

/* Readings are of one kind of time, in order, and none is lost. */
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
    says.throttle = 1 << THROTTLE_HEAT;
    wait_ms(10);
    gauge_work(g, false);
    for (int i = 0; gauge_take(g, true, &r); i++, ms += r.ms) {
        assert_int_equal(r.iter, i ? 9 : 7);
        assert_int_equal(r.working, i == 1);
        assert_true(r.throttled == i && r.throttle == (i ? 1 << THROTTLE_HEAT : 0));
        assert_true(i < 2);
    }
    assert_true(ms >= 10 && ms <= clock_ms(from_ns, clock_ns()));
    gauge_close(g);
}

/* A run without end: its readings become longer, each twice as long as one of the block before. */
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
    /* What is between work and something else is in neither. */
    gauge_work(g, false);
    while (gauge_take(g, true, &r)) {}
    for (int i = 0; i < 6; i++) {
        says.clock_mhz = i % 2 ? 1500 : 300; /* of the time before: others, then work */
        gauge_work(g, i % 2 == 0);
        while (gauge_take(g, false, &r)) near(r.value[GAUGE_CLOCK], r.working ? 1500 : 300, 1e-6);
    }
    gauge_close(g);
}

/* Nobody takes them: what there is no room for is in the ones that follow. */
static void test_readings_wait(void **state)
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

/* A long time of something else, of which nobody takes readings, leaves nothing in those of the work; nor does work in those
 * of something else, where even the room for such changes is full. */
static void test_kinds_of_time_stay_apart(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    struct gauge_reading r;
    int working = 0;
    says.clock_mhz = 300;
    for (int i = 0; i < 200; i++) gauge_work(g, false);
    gauge_work(g, true);
    says.clock_mhz = 1500;
    for (int i = 0; i < 5; i++) gauge_work(g, true);
    for (; gauge_take(g, true, &r); working += r.working)
        near(r.value[GAUGE_CLOCK], r.working ? 1500 : 300, 1e-6);
    assert_true(working > 0);
    for (int i = 0; i < 300; i++) {
        gauge_work(g, i % 3 == 0);
        says.clock_mhz = i % 3 ? 300 : 1500;
    }
    while (gauge_take(g, true, &r))
        if (r.working) near(r.value[GAUGE_CLOCK], 1500, 1e-6);
    gauge_close(g);
}

/* The thread samples at its interval, and ends at once when it is told to. */
static void test_a_thread_samples(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(10);
    gauge_work(g, true);
    for (int i = 0; i < 500 && asked < 7; i++) wait_ms(10);
    gauge_work(g, false);
    assert_true(gauge_summarize(g).samples >= 5);
    gauge_close(g);
    int before = asked;
    wait_ms(30);
    assert_int_equal(asked, before);
    g = open_gauge(3600000);
    wait_ms(100); /* it waits by now */
    int64_t from_ns = clock_ns();
    gauge_close(g);
    assert_true(clock_ms(from_ns, clock_ns()) < 1000);
}

/* A device that takes its time is not waited for by whoever works. */
static void test_nobody_waits_for_a_sample(void **state)
{
    (void)state;
    enum { SLOW_MS = 400 };
    struct gauge *g = open_gauge(1);
    struct gauge_reading r;
    thinks_ms = SLOW_MS;
    int before = asked;
    while (asked < before + 2) wait_ms(1); /* the second slow one has begun */
    int64_t from_ns = clock_ns();
    for (int i = 0; i < 1000; i++) {
        gauge_at(g, i);
        (void)gauge_last(g);
        (void)gauge_take(g, false, &r);
    }
    assert_true(clock_ms(from_ns, clock_ns()) < SLOW_MS / 2);
    assert_true(gauge_summarize(g).sample_ms > 1);
    gauge_close(g);
}

static void test_who_says_nothing_says_why(void **state)
{
    (void)state;
    struct gauge *g = NULL;
    assert_int_equal(gauge_open(&g, &without, NULL, 1), ST_UNSUPPORTED);
    assert_null(g);
    is_mute = true;
    assert_int_equal(gauge_open(&g, &device, NULL, 1), ST_UNSUPPORTED);
    assert_null(g);
    assert_string_equal(fail_message(), "no gauges here");
    gauge_close(g);
}

/* Of a device that falls silent the last word stands for the time until its next one. */
static void test_a_silence(void **state)
{
    (void)state;
    struct gauge *g = open_gauge(0);
    gauge_work(g, true);
    is_mute = true;
    wait_ms(20);
    gauge_work(g, true);
    assert_true(gauge_summarize(g).seconds < 0.01);
    is_mute = false;
    gauge_work(g, true);
    assert_true(gauge_summarize(g).seconds >= 0.02);
    gauge_close(g);
}

/* The processor on which this runs. */
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
        TEST(test_means_are_of_time),
        TEST(test_the_live_line),
        TEST(test_a_set_clock_is_not_slowed),
        TEST(test_energy_is_the_devices_own),
        TEST(test_what_is_not_known_stays_so),
        TEST(test_readings),
        TEST(test_readings_become_fewer),
        TEST(test_readings_wait),
        TEST(test_kinds_of_time_stay_apart),
        TEST(test_a_thread_samples),
        TEST(test_nobody_waits_for_a_sample),
        TEST(test_who_says_nothing_says_why),
        TEST(test_a_silence),
        TEST(test_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
