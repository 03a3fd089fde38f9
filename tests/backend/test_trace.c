/* Traces of a GPU: each kernel is matched to the node that launched it, directly or in the replay
 * of a captured graph. Runs on a GPU, or on an emulated one (tests/e2e/test_gpu_trace.sh). With an
 * argument, prints one trace for that script. */
#include "../support/cases.h"
#include "backend/backend.h"
#include "backend/counters.h"
#include "backend/range.h"
#include "backend/trace.h"
#include "base/clock.h"

#include "../support/hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 64, COLUMNS = 96, OUTSIDE = 1000 };

/* A matmul of the library, which may be several kernels, and built-in kernels; the sum of rows is
 * two kernels. */
static void open(struct hand *s)
{
    hand_init(s);
    s->backend = backend_find("cuda");
    struct graph *g = &s->graph;
    value x = g_input(g, "x", type_2d(DT_F32, ROWS, COLUMNS));
    value w = g_input(g, "w", type_2d(DT_F32, COLUMNS, COLUMNS));
    value h = g_linear(g, x, w, (value){0}, false);
    h = g_softmax(g, g_gelu(g, h, false));
    h = g_linear(g, h, w, (value){0}, false);
    graph_output(g, "h", h);
    graph_output(g, "sum", g_sum_squares(g, h));
    hand_plan(s, NULL);
}

static void mark_step(void *user, const struct plan *p, int step)
{
    (void)user;
    p->backend->trace->mark(p->context, step);
}

static const struct plan_hooks marking = {.before = mark_step};

static void run_step(struct hand *s)
{
    hand_ok(plan_run(&s->plan, &marking));
    s->backend->trace->mark(s->context, -1);
}

static void *record(struct hand *s)
{
    void *recording;
    hand_ok(s->backend->recording->begin(s->context));
    run_step(s);
    hand_ok(s->backend->recording->end(s->context, &recording));
    return recording;
}

/* Whether this machine can run the tests. */
static bool there(void)
{
    const struct backend *b = backend_find("cuda");
    void *context;
    if (!b || b->devices.count() == 0) {
        print_skipped("there is no GPU");
        return false;
    }
    hand_ok(b->open(0, &context));
    enum status st = b->trace->begin(context);
    struct arena a = {0};
    struct trace t;
    if (st == ST_OK) st = b->trace->end(context, &t, &a);
    arena_release(&a);
    b->close(context);
    if (st != ST_OK) print_skipped("%s", fail_message());
    return st == ST_OK;
}

static bool emulated(const struct hand *s)
{
    struct device_facts f;
    hand_ok(s->backend->devices.describe(0, &f));
    return strstr(f.name, "emulated") != NULL;
}

/* Checks that the activities from number `from` on are those of one run: in the order of the steps,
 * at least one per step, built-in kernels with their names. Returns the number after the last. */
static int64_t check_run(const struct hand *s, const struct trace *t, int64_t from, int replay)
{
    int64_t i = from;
    for (int step = 0; step < s->plan.steps; step++) {
        if (!s->plan.step[step].kernel) continue;
        int64_t first = i;
        while (i < t->activities && t->activity[i].mark == step && t->activity[i].replay == replay)
            i++;
        if (i == first)
            fail_msg("step %d, %s: nothing; number %lld is of mark %d, replay %d", step,
                     op_def(s->plan.step[step].kernel->op)->name, (long long)i,
                     i < t->activities ? t->activity[i].mark : -2,
                     i < t->activities ? t->activity[i].replay : -2);
        if (s->plan.step[step].kernel->op == OP_GELU)
            assert_string_equal(t->activity[first].name, "gelu");
    }
    return i;
}

static void check_order(const struct trace *t)
{
    for (int64_t i = 0; i < t->activities; i++) {
        const struct activity *x = &t->activity[i];
        assert_true(x->end_ns >= x->start_ns);
        if (i) assert_true(x->start_ns >= t->activity[i - 1].start_ns);
        assert_true(strlen(x->short_name) < ACTIVITY_NAME);
        assert_int_equal(x->bytes > 0, x->kind != ACTIVITY_KERNEL);
    }
}

static void begin(struct hand *s)
{
    hand_ok(s->backend->trace->begin(s->context));
}

static void end(struct hand *s, struct trace *t)
{
    hand_ok(s->backend->trace->end(s->context, t, &s->arena));
    if (t->why) print_message("%s\n", t->why);
    check_order(t);
}

static void test_each_kernel_is_matched_to_its_node(void **state)
{
    (void)state;
    struct hand s;
    struct trace t;
    open(&s);
    run_step(&s); /* compiles; without a trace, marks have no effect */
    hand_ok(s.backend->stream.sync(s.context));
    int64_t from = clock_ns();
    begin(&s);
    for (int i = 0; i < 2; i++) run_step(&s);
    end(&s, &t);
    int64_t to = clock_ns(), slack = 1000000;
    int64_t half = check_run(&s, &t, 0, -1);
    assert_int_equal(check_run(&s, &t, half, -1), t.activities);
    assert_int_equal(t.dropped + t.unmatched, 0);
    assert_null(t.why);
    assert_non_null(strstr(t.by, "CUPTI"));
    if (!emulated(&s)) {
        assert_true(t.activity[0].start_ns > from - slack);
        assert_true(t.activity[t.activities - 1].end_ns < to + slack);
    }
    hand_close(&s);
}

/* Uploads and downloads between replays keep their own marks. */
static void test_replays_have_the_marks_of_the_capture(void **state)
{
    (void)state;
    enum { REPLAYS = 3 };
    struct hand s;
    struct trace t;
    float x[COLUMNS] = {0};
    open(&s);
    run_step(&s);
    begin(&s);
    void *recording = record(&s);
    for (int replay = 0; replay < REPLAYS; replay++) {
        s.backend->trace->mark(s.context, OUTSIDE + replay);
        hand_ok(s.backend->memory.upload(s.context, hand_input(&s, "x"), x, sizeof x));
        hand_ok(s.backend->recording->replay(s.context, recording));
        hand_ok(s.backend->memory.download(s.context, x, hand_output(&s, "h"), sizeof x));
    }
    s.backend->recording->free(s.context, recording);
    end(&s, &t);
    int64_t i = 0;
    for (int replay = 0; replay < REPLAYS; replay++) {
        assert_int_equal(t.activity[i].mark, OUTSIDE + replay);
        assert_int_equal(t.activity[i].kind, ACTIVITY_COPY);
        assert_int_equal(t.activity[i].bytes, sizeof x);
        assert_string_equal(t.activity[i++].name, "copy host to device");
        i = check_run(&s, &t, i, replay);
        assert_int_equal(t.activity[i].mark, OUTSIDE + replay);
        assert_string_equal(t.activity[i++].short_name, "copy device to host");
    }
    assert_int_equal(i, t.activities);
    assert_int_equal(t.dropped + t.unmatched, 0);
    hand_close(&s);
}

/* The library may not report the kernels of such a graph; if it does, they are unmatched. */
static void test_an_earlier_capture_is_unmatched(void **state)
{
    (void)state;
    struct hand s;
    struct trace t;
    open(&s);
    run_step(&s);
    void *before = record(&s);
    begin(&s);
    hand_ok(s.backend->recording->replay(s.context, before));
    void *now = record(&s);
    hand_ok(s.backend->recording->replay(s.context, now));
    enum status st = s.backend->trace->end(s.context, &t, &s.arena);
    hand_ok(st);
    int64_t i = 0;
    while (i < t.activities && t.activity[i].mark < 0) i++;
    assert_int_equal(i, t.unmatched);
    assert_int_equal(check_run(&s, &t, i, 1), t.activities);
    assert_non_null(strstr(t.why, "captured before the trace began"));
    s.backend->recording->free(s.context, before);
    s.backend->recording->free(s.context, now);
    hand_close(&s);
}

/* A graph captured during one trace is known in the next. */
static void test_a_capture_serves_later_traces(void **state)
{
    (void)state;
    struct hand s;
    struct trace t;
    open(&s);
    run_step(&s);
    begin(&s);
    void *recording = record(&s);
    end(&s, &t);
    assert_int_equal(t.activities, 0);
    hand_ok(s.backend->recording->replay(s.context, recording)); /* not traced */
    begin(&s);
    hand_ok(s.backend->recording->replay(s.context, recording));
    end(&s, &t);
    assert_int_equal(check_run(&s, &t, 0, 0), t.activities);
    assert_int_equal(t.unmatched, 0);
    s.backend->recording->free(s.context, recording);
    hand_close(&s);
}

/* The number that the emulated CUPTI gives to a kernel's name (tests/emulator/cupti_ranges.cpp). */
static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 16777619u;
    return h & 0xffff;
}

/* The counters must be for the same kernels as a trace of the same work, in the same order. */
static void test_counters_follow_the_launches(void **state)
{
    (void)state;
    enum { MOST = 64 };
    struct hand s;
    struct trace t;
    struct kernel_counters counted[MOST];
    int64_t kernels = 0, i = 0;
    open(&s);
    run_step(&s);
    begin(&s);
    run_step(&s);
    end(&s, &t);
    for (int twice = 0; twice < 2; twice++) {
        if (s.backend->counters->begin(s.context, COUNTERS_OF_TIME, MOST) != ST_OK) {
            hand_close(&s);
            SKIP("%s", fail_message());
        }
        hand_ok(plan_run(&s.plan, NULL));
        hand_ok(s.backend->counters->end(s.context, counted, &kernels));
    }
    assert_true(kernels > s.plan.steps / 2);
    for (const struct activity *x = t.activity; x < t.activity + t.activities; x++) {
        if (x->kind != ACTIVITY_KERNEL) continue;
        assert_true(i < kernels);
        const struct kernel_counters *c = &counted[i];
        if (emulated(&s)) {
            assert_int_equal((int64_t)c->dram_read, hash_of(x->name));
            assert_int_equal((int64_t)c->dram_written, i);
            assert_true(c->tensor_active == 0.25 && c->sm_active == 0.5 && c->dram_busy == 0.75);
        } else {
            assert_true(c->sm_active > 0 && c->sm_active <= 1.01 && c->dram_busy <= 1.01);
        }
        i++;
    }
    assert_int_equal(i, kernels);
    hand_close(&s);
}

/* Kernels beyond the given space are left out; afterwards everything works as before. */
static void test_counters_have_limited_space(void **state)
{
    (void)state;
    struct hand s;
    struct trace t;
    struct kernel_counters counted[1];
    int64_t kernels = 0;
    open(&s);
    run_step(&s);
    if (s.backend->counters->begin(s.context, COUNTERS_OF_TIME, 1) != ST_OK) {
        hand_close(&s);
        SKIP("%s", fail_message());
    }
    hand_ok(plan_run(&s.plan, NULL));
    hand_ok(s.backend->counters->end(s.context, counted, &kernels));
    assert_int_equal(kernels, 1);
    begin(&s);
    run_step(&s);
    end(&s, &t);
    check_run(&s, &t, 0, -1);
    hand_close(&s);
}

/* Prints one trace of two runs and two replays. */
static int once(void)
{
    struct hand s;
    struct trace t;
    open(&s);
    range_push("step");
    range_push("forward");
    range_pop();
    range_pop();
    run_step(&s);
    s.backend->trace->profiler_range(s.context, true);
    enum status st = s.backend->trace->begin(s.context);
    if (st == ST_OK) {
        for (int i = 0; i < 2; i++) run_step(&s);
        void *recording = record(&s);
        for (int i = 0; i < 2; i++) hand_ok(s.backend->recording->replay(s.context, recording));
        st = s.backend->trace->end(s.context, &t, &s.arena);
        s.backend->recording->free(s.context, recording);
    }
    s.backend->trace->profiler_range(s.context, false);
    if (st != ST_OK)
        printf("refused: %s\n", fail_message());
    else
        printf("%lld activities, %lld dropped, %lld unmatched, by %s: %s\n",
               (long long)t.activities, (long long)t.dropped, (long long)t.unmatched, t.by,
               t.why ? t.why : "whole");
    run_step(&s); /* everything else works */
    hand_close(&s);
    return 0;
}

/* Prints the number of kernels that were counted, or why there are none. */
static int count(void)
{
    enum { MOST = 64 };
    struct hand s;
    struct kernel_counters counted[MOST];
    int64_t kernels = 0;
    open(&s);
    enum status st = s.backend->counters->begin(s.context, COUNTERS_OF_TIME, MOST);
    run_step(&s);
    if (st == ST_OK) st = s.backend->counters->end(s.context, counted, &kernels);
    printf("%lld kernels counted: %s\n", (long long)kernels, st == ST_OK ? "all" : fail_message());
    run_step(&s); /* everything else works */
    hand_close(&s);
    return 0;
}

int main(int words, char **word)
{
    if (words > 1) return !strcmp(word[1], "count") ? count() : once();
    if (!there()) return EXIT_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_kernel_is_matched_to_its_node),
        cmocka_unit_test(test_replays_have_the_marks_of_the_capture),
        cmocka_unit_test(test_an_earlier_capture_is_unmatched),
        cmocka_unit_test(test_a_capture_serves_later_traces),
        cmocka_unit_test(test_counters_follow_the_launches),
        cmocka_unit_test(test_counters_have_limited_space),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
