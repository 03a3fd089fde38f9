/* The number of launches of timed calls: first direct, then captured if the backend can. */
#include "measure/stopwatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A device whose clock advances by a millisecond per call. */
static struct device_of_test {
    int started, recorded, replayed, freed, in_recording;
    bool recording;
    double now_ms, event_ms[2];
} device;

static enum status start(void *user, int i)
{
    int *last = user;
    assert_int_equal(i, *last);
    (*last)++;
    device.started++;
    if (device.recording)
        device.in_recording++;
    else
        device.now_ms += 1;
    return ST_OK;
}

static enum status begin(void *ctx)
{
    (void)ctx;
    device.recording = true;
    device.in_recording = 0;
    return ST_OK;
}

static enum status end(void *ctx, void **ret_recording)
{
    (void)ctx;
    device.recording = false;
    device.recorded++;
    *ret_recording = &device;
    return ST_OK;
}

static enum status replay(void *ctx, void *recording)
{
    (void)ctx;
    assert_ptr_equal(recording, &device);
    device.replayed++;
    device.now_ms += device.in_recording;
    return ST_OK;
}

static void recording_free(void *ctx, void *recording)
{
    (void)ctx, (void)recording;
    device.freed++;
}

static enum status sync(void *ctx)
{
    (void)ctx;
    return ST_OK;
}

static enum status mark(void *ctx, int event)
{
    (void)ctx;
    device.event_ms[event] = device.now_ms;
    return ST_OK;
}

static enum status elapsed(void *ctx, int from, int to, double *ret_ms)
{
    (void)ctx;
    *ret_ms = device.event_ms[to] - device.event_ms[from];
    return ST_OK;
}

static const struct backend_recording recording = {
    .begin = begin, .end = end, .replay = replay, .free = recording_free};
static const struct backend
    plain = {.name = "plain",
             .stream = {.sync = sync, .event_record = mark, .event_elapsed = elapsed}},
    records = {.name = "records",
               .stream = {.sync = sync, .event_record = mark, .event_elapsed = elapsed},
               .recording = &recording};

static double time_of(struct stopwatch *w, int *last, int calls)
{
    double ms;
    *last = 0;
    if (stopwatch_time(w, calls, &ms) != ST_OK) fail_msg("%s", fail_message());
    return ms;
}

static void test_without_recordings(void **state)
{
    (void)state;
    int last;
    struct stopwatch w = {.backend = &plain, .start = start, .user = &last};
    device = (struct device_of_test){0};
    assert_true(time_of(&w, &last, 1) == 1);
    assert_true(time_of(&w, &last, 5) == 1);
    assert_int_equal(device.started, 6);
    stopwatch_release(&w);
}

static void test_with_recordings(void **state)
{
    (void)state;
    int last;
    struct stopwatch w = {.backend = &records, .start = start, .user = &last};
    device = (struct device_of_test){0};
    assert_true(time_of(&w, &last, 1) == 1); /* not captured: the first call compiles */
    assert_int_equal(device.recorded, 0);
    for (int i = 0; i < 3; i++) assert_true(time_of(&w, &last, 7) == 1);
    assert_true(device.recorded == 1 && device.replayed == 3 && device.started == 8);
    assert_true(time_of(&w, &last, 2) == 1); /* another number of calls needs another graph */
    assert_true(device.recorded == 2 && device.freed == 1);
    stopwatch_release(&w);
    stopwatch_release(&w);
    assert_int_equal(device.freed, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_recordings),
        cmocka_unit_test(test_with_recordings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
