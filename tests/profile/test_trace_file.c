/* A trace follows its format, has every kernel inside its ranges, and respects its limit. With the
 * name of a file as argument: checks that file and prints what it contains. */
#include "profile/trace_file.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "../support/trace_check.h"
#include "base/file.h"
#include "base/str.h"
#include "engine/facts.h"
#include "engine/memory.h"
#include "profile/collect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LAYERS = 12, STEPS = 5, SHOWN = 3, ROOM = 1 << 26 };

static struct tiny tiny;
static struct arena arena;
static struct profile p;
static struct trace_facts facts;
static struct str text;
static struct trace_said said;

static void open_model(int micro_steps)
{
    struct config c = tiny_config();
    c.model.n_layer = LAYERS;
    c.plan.flash = false;
    c.train.gradient_accumulation_steps = micro_steps;
    unsigned kinds = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;
    tiny_open(&tiny, &c, micro_steps > 1 ? kinds | 1u << GRAPH_MICRO_MORE : kinds);
}

static void measure(void)
{
    struct profile_options o = {.warmup = 1, .steps = STEPS, .limit_ms = 60000};
    hand_ok(profile_run(&tiny.engine, &o, &p, &arena));
}

static void write_trace(int steps, int64_t limit)
{
    trace_forget(&facts);
    str_release(&text);
    struct trace_options o = {steps, limit};
    trace_text(&p, &o, "0", &text, &said);
    const char *why = trace_check(str_text(&text), (size_t)text.len, &facts);
    if (why) fail_msg("%s", why);
    assert_int_equal(said.bytes, text.len);
}

static int close_model(void **state)
{
    (void)state;
    trace_forget(&facts);
    str_release(&text);
    tiny_close(&tiny);
    arena_release(&arena);
    return 0;
}

static bool is_kernel(const struct trace_event *e)
{
    return e->pid == TRACE_DEVICE && e->tid >= TRACE_KERNELS && e->tid < TRACE_COPIES;
}

static double number(const struct trace_event *e, const char *name)
{
    if (!json_is_number(trace_arg(e, name))) fail_msg("%s: no %s", trace_name(e), name);
    return json_number_value(trace_arg(e, name));
}

static const struct profile_row *row_of(const struct trace_event *e)
{
    const char *node = json_string_value(trace_arg(e, "node"));
    assert_non_null(node);
    for (int i = 0; i < p.rows; i++)
        if (!strcmp(node,
                    arena_printf(&arena, "%s %d", graph_kind_name(p.row[i].kind), p.row[i].node)))
            return &p.row[i];
    fail_msg("no row %s", node);
    return NULL;
}

/* The ranges around the start of a kernel, from the outermost: "step", then the row's. */
static void check_ranges(const struct trace_event *kernel)
{
    const struct range *r = &row_of(kernel)->range;
    int depth = 0;
    for (int i = 0; i < facts.events; i++) {
        const struct trace_event *e = &facts.event[i];
        if (e->pid != TRACE_DEVICE || e->tid != TRACE_RANGES) continue;
        if (e->start > kernel->start || e->end <= kernel->start) continue;
        assert_true(e->end >= kernel->end);
        assert_true(depth <= r->words);
        assert_string_equal(trace_name(e), depth ? r->word[depth - 1] : "step");
        depth++;
    }
    assert_int_equal(depth, r->words + 1);
}

static void check_args(const struct trace_event *e)
{
    const struct profile_row *r = row_of(e);
    assert_true(number(e, "FLOPs") == r->flops && number(e, "bytes") == r->bytes);
    assert_string_equal(json_string_value(trace_arg(e, "shape")), r->shape);
    assert_string_equal(json_string_value(trace_arg(e, "phase")), phase_name(r->phase));
    assert_true(json_is_string(trace_arg(e, "bound by")));
    if (r->range.layer >= 0) assert_int_equal((int)number(e, "layer"), r->range.layer);
    /* as r->work_ms: on a busy machine by the median, not the mean */
    double rate = r->bytes / (double)(e->end - e->start) * r->ms / r->work_ms;
    if (e->end - e->start > 1000 && r->bytes > 0)
        assert_true(fabs(number(e, "GB/s") / rate - 1) < 1e-2);
}

static int64_t kernels(void)
{
    int64_t more = tiny.config.train.gradient_accumulation_steps - 1;
    const struct engine *e = &tiny.engine;
    return plan_kernels(&e->program.plan[GRAPH_MICRO]) +
           plan_kernels(&e->program.plan[GRAPH_UPDATE]) +
           (more ? more * plan_kernels(&e->program.plan[GRAPH_MICRO_MORE]) : 0);
}

static void check_kernels(void)
{
    struct facts plan = facts_of(&tiny.engine.program);
    double flops = 0;
    int n = 0;
    for (int i = 0; i < facts.events; i++) {
        const struct trace_event *e = &facts.event[i];
        if (!is_kernel(e)) continue;
        n++;
        flops += number(e, "FLOPs");
        check_args(e);
        check_ranges(e);
    }
    assert_int_equal(n, said.steps * kernels());
    assert_true(flops == said.steps * plan.flops);
}

/* Each step is a range, and the host has three parts per step. */
static void check_steps(void)
{
    static const char *const parts[] = {"generate tokens", "run the step", "wait"};
    int steps = 0, n = 0;
    for (int i = 0; i < facts.events; i++) {
        const struct trace_event *e = &facts.event[i];
        if (e->pid == TRACE_HOST && e->tid == TRACE_DEEDS) {
            assert_string_equal(trace_name(e), parts[n++ % 3]);
            assert_int_equal((int)number(e, "step"), said.first + (n - 1) / 3);
        }
        steps += e->pid == TRACE_DEVICE && e->tid == TRACE_RANGES && !strcmp(trace_name(e), "step");
    }
    assert_int_equal(steps, said.steps);
    assert_int_equal(n, 3 * said.steps);
}

/* The one thread works in every kernel, within its time. */
static void check_threads(void)
{
    int work = 0;
    for (int i = 0; i < facts.events; i++) {
        const struct trace_event *e = &facts.event[i], *kernel;
        if (e->pid != TRACE_HOST || e->tid < TRACE_THREADS) continue;
        assert_int_equal(e->tid, TRACE_THREADS);
        work++;
        kernel = trace_at(&facts, TRACE_DEVICE, TRACE_KERNELS, (e->start + e->end) / 2);
        assert_non_null(kernel);
        assert_string_equal(trace_name(e), trace_name(kernel));
    }
    assert_true(work >= said.steps * kernels());
}

static double most(const char *counter, const char *unit)
{
    const json_t *e, *all = json_object_get(facts.trace, "traceEvents");
    double x = 0;
    size_t i;
    json_array_foreach(all, i, e) {
        const char *name = json_string_value(json_object_get(e, "name"));
        if (!strcmp(name, counter))
            x = fmax(x, json_number_value(json_object_get(json_object_get(e, "args"), unit)));
    }
    return x;
}

static void test_a_trace_of_twelve_layers(void **state)
{
    (void)state;
    struct memory_course c;
    open_model(1);
    measure();
    write_trace(SHOWN, ROOM);
    assert_int_equal(said.steps, SHOWN);
    assert_int_equal(said.missing + said.cut, 0);
    assert_true(said.first <= p.shown_step && p.shown_step < said.first + SHOWN);
    assert_true(facts.deepest >= 5);
    check_kernels();
    check_steps();
    check_threads();
    assert_int_equal(facts.flows, 0); /* the host is the device: nothing is launched */
    memory_course(&tiny.engine.program, &c, &arena);
    assert_true(fabs(most("memory in use", "MiB") * (1 << 20) / (double)c.moment[c.peak].used - 1) <
                1e-5);
    assert_true(most("memory: saved for backward", "MiB") > 0);
    assert_true(most("achieved bandwidth", "GB/s") > 0 &&
                most("achieved arithmetic", "TFLOP/s") > 0);
}

static void test_micro_steps_are_separate_passes(void **state)
{
    (void)state;
    int forward = 0;
    open_model(3);
    measure();
    write_trace(1, ROOM);
    assert_int_equal(said.first, p.shown_step);
    check_kernels();
    for (int i = 0; i < facts.events; i++)
        forward +=
            facts.event[i].tid == TRACE_RANGES && !strcmp(trace_name(&facts.event[i]), "forward");
    assert_int_equal(forward, 3);
}

static const char *holds(void)
{
    return json_string_value(json_object_get(json_object_get(facts.trace, "otherData"), "holds"));
}

/* Above the limit whole steps are left out; of the only step the least important events. */
static void test_limit_is_respected(void **state)
{
    (void)state;
    open_model(1);
    measure();
    write_trace(STEPS, ROOM);
    assert_int_equal(said.steps, STEPS);
    int64_t all = said.bytes, one = said.bytes / STEPS;
    write_trace(STEPS, all - one);
    assert_true(said.bytes <= all - one);
    assert_true(said.steps >= 2 && said.steps < STEPS);
    assert_int_equal(said.missing, STEPS - said.steps);
    assert_non_null(strstr(holds(), "more would exceed the limit"));
    check_kernels();
    check_steps();
    write_trace(STEPS, one / 2);
    assert_true(said.bytes <= one / 2);
    assert_int_equal(said.steps, 1);
    assert_int_equal(said.first, p.shown_step);
    assert_true(said.cut > 0 && said.missing == STEPS - 1);
    assert_non_null(strstr(holds(), "events of the step were left out"));
    assert_true(said.events > 0);
}

/* --- overlapping activities -----------------------------------------------------------------*/

static struct activity activity(int mark, enum activity_kind kind, int64_t start, int64_t end)
{
    return (struct activity){
        kind,     mark,  -1,  kind == ACTIVITY_KERNEL ? "kernel \"x\"" : "copy device to host",
        "kernel", start, end, 64,
        false};
}

static int mark(int n)
{
    const struct plan *plan = &tiny.engine.program.plan[GRAPH_MICRO];
    for (int id = 0; id < plan->steps; id++)
        if (plan->step[id].kernel && !n--) return id;
    return -1;
}

static void test_overlapping_activities_have_separate_rows(void **state)
{
    (void)state;
    open_model(1);
    struct activity a[] = {activity(mark(0), ACTIVITY_KERNEL, 1000, 5000),
                           activity(mark(1), ACTIVITY_KERNEL, 4000, 8000),
                           activity(-1, ACTIVITY_COPY, 4500, 9500),
                           activity(mark(2), ACTIVITY_KERNEL, 4600, 4700),
                           activity(mark(9), ACTIVITY_KERNEL, 9000, 9100),
                           activity(-1, ACTIVITY_COPY, 9200, 9900)};
    static struct profile_span step = {0, 10000};
    struct profile_action action[] = {{-1, RANDOM_STEP_STARTS, 0, {-500, 900}},
                                      {mark(0), RANDOM_STEP_STARTS, 0, {-400, -300}}};
    struct collected c = {.marks = marks_of(&tiny.engine),
                          .trace.activity = a,
                          .trace.activities = COUNT_OF(a),
                          .step = &step,
                          .steps = 1,
                          .action = action,
                          .actions = COUNT_OF(action)};
    int row[TRACE_COPIES + TRACE_LANES] = {0};
    p = (struct profile){.engine = &tiny.engine, .steps = 1};
    rows_make(&c, &p, &arena);
    write_trace(1, ROOM);
    for (int i = 0; i < facts.events; i++)
        if (facts.event[i].pid == TRACE_DEVICE) row[facts.event[i].tid]++;
    assert_int_equal(row[TRACE_KERNELS], 2);
    assert_int_equal(row[TRACE_KERNELS + 1], 1);
    assert_int_equal(row[TRACE_KERNELS + 2], 1);
    assert_int_equal(row[TRACE_COPIES], 1);
    assert_int_equal(row[TRACE_COPIES + 1], 1);
    /* The host begins first. */
    assert_int_equal(facts.event[0].start, 0);
    assert_string_equal(trace_name(&facts.event[1]), profile_kernel_name(&p.row[0], &arena));
}

/* Arrows from launches to kernels, each to its own; of a replayed graph to the first kernel. */
static void test_arrows(void **state)
{
    (void)state;
    open_model(1);
    struct engine device = tiny.engine;
    device.backend = backend_find("null"); /* its memory is not the host's */
    struct activity a[] = {activity(mark(0), ACTIVITY_KERNEL, 1000, 2000),
                           activity(mark(0), ACTIVITY_KERNEL, 2000, 2500),
                           activity(-1, ACTIVITY_COPY, 2600, 2700),
                           activity(mark(3), ACTIVITY_KERNEL, 3000, 4000)};
    static struct profile_span step = {0, 10000};
    struct profile_action action[] = {{-1, RANDOM_STEP_STARTS, 0, {100, 900}},
                                      {mark(0), RANDOM_STEP_STARTS, 0, {200, 300}},
                                      {mark(3), RANDOM_STEP_STARTS, 0, {400, 500}},
                                      {mark(4), RANDOM_STEP_STARTS, 0, {600, 700}}};
    for (int replayed = 0; replayed < 2; replayed++) {
        struct collected c = {.marks = marks_of(&tiny.engine),
                              .trace.activity = a,
                              .trace.activities = COUNT_OF(a),
                              .step = &step,
                              .steps = 1,
                              .action = action,
                              .actions = replayed ? 1 : COUNT_OF(action)};
        p = (struct profile){.engine = &tiny.engine, .steps = 1};
        rows_make(&c, &p, &arena);
        p.engine = &device;
        write_trace(1, ROOM);
        int64_t to[] = {1000, 3000}, from[] = {200, 400};
        assert_int_equal(facts.flows, replayed ? 2 : 4); /* nothing of mark 4 ran */
        for (int i = 0; i < facts.flows; i++) {
            const struct trace_flow *x = &facts.flow[i];
            assert_int_equal(x->pid, x->ends ? TRACE_DEVICE : TRACE_HOST);
            assert_true(x->at == (x->ends ? to[x->id] : replayed ? 100 : from[x->id]));
        }
        write_trace(1, (int64_t)text.len - 1); /* too small: arrows have both ends or none */
        assert_int_equal(facts.flows % 2, 0);
    }
}

/* "kernels 120, copies 6, host 240, ranges 99, counters 300" */
static int check_file(const char *path)
{
    char *data;
    int64_t size;
    int kernel = 0, copies = 0, host = 0, ranges = 0;
    hand_ok(file_read(path, &arena, &data, &size));
    const char *why = trace_check(data, (size_t)size, &facts);
    for (int i = 0; i < facts.events; i++) {
        const struct trace_event *e = &facts.event[i];
        host += e->pid == TRACE_HOST && e->tid == TRACE_DEEDS;
        kernel += is_kernel(e);
        copies += e->pid == TRACE_DEVICE && e->tid >= TRACE_COPIES;
        ranges += e->pid == TRACE_DEVICE && e->tid == TRACE_RANGES;
    }
    printf("kernels %d, copies %d, host %d, ranges %d, counters %d\n", kernel, copies, host, ranges,
           facts.counts);
    if (why) fprintf(stderr, "%s: %s\n", path, why);
    trace_forget(&facts);
    arena_release(&arena);
    return why != NULL;
}

int main(int words, char **word)
{
    if (words > 1) return check_file(word[1]);
#define TEST(name) cmocka_unit_test_teardown(name, close_model)
    const struct CMUnitTest tests[] = {
        TEST(test_a_trace_of_twelve_layers),
        TEST(test_micro_steps_are_separate_passes),
        TEST(test_limit_is_respected),
        TEST(test_arrows),
        TEST(test_overlapping_activities_have_separate_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
