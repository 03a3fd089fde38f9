/* Profiles of a fake device: with a trace, launched or replayed, and with events only. */
#include "profile/collect.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "base/clock.h"
#include "profile/words.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 4, PLAYED_NS = 2000, GAP_NS = 500, MOST = 1 << 18 };

/* Activities of the device so far, and those of the graph that is being captured. */
static struct {
    struct backend backend;
    bool tracing, capturing, refuses;
    int mark, begun, ranges; /* ranges: open for a profiler */
    int64_t since, activities;
    struct activity activity[MOST];
    int recorded, mark_recorded[MOST];
    int64_t plays, runs;
    /* Hardware counters: of each node, of `others` further kernels; why there are none. */
    bool counting, others;
    int lost; /* kernels that are not counted */
    const char *no_counters;
    int64_t counted;
    struct kernel_counters counter[MOST];
} fake;

static struct tiny tiny;
static struct arena arena;
static struct profile p;

static void add_activity(int mark, const char *name, int64_t start, int64_t end)
{
    if (!fake.tracing) return;
    assert_true(fake.activities < MOST);
    fake.activity[fake.activities++] = (struct activity){.mark = mark,
                                                         .replay = -1,
                                                         .name = name,
                                                         .short_name = name,
                                                         .start_ns = start,
                                                         .end_ns = end};
}

static void add_counter(double read)
{
    if (fake.counting)
        fake.counter[fake.counted++] = (struct kernel_counters){.dram_read = read,
                                                                .dram_written = 1,
                                                                .tensor_active = 0.25,
                                                                .sm_active = 0.5,
                                                                .dram_busy = 0.75};
}

static enum status begin(void *ctx)
{
    (void)ctx;
    if (fake.refuses)
        return (fail)(ST_UNSUPPORTED, "no trace today"); /* cmocka has a macro of that name */
    fake.tracing = true;
    fake.begun++;
    fake.activities = 0;
    fake.mark = -1;
    return ST_OK;
}

/* A kernel runs from the moment its mark is set until it is cleared. */
static void mark(void *ctx, int to)
{
    (void)ctx;
    int64_t now = clock_ns();
    if (to < 0 && fake.mark >= 0) {
        fake.runs += !fake.capturing;
        if (fake.capturing)
            fake.mark_recorded[fake.recorded++] = fake.mark;
        else
            add_activity(fake.mark, "kernel", fake.since, now);
        if (fake.others) add_activity(fake.mark, "other", now, now);
        add_counter(100 * (fake.mark + 1));
        if (fake.others) add_counter(7);
    }
    fake.mark = to;
    fake.since = now;
}

static enum status end(void *ctx, struct trace *ret, struct arena *a)
{
    (void)ctx, (void)a;
    fake.tracing = false;
    *ret = (struct trace){.activity = fake.activity,
                          .activities = fake.activities,
                          .dropped = 7,
                          .why = "the buffer was full",
                          .by = "a fake"};
    return ST_OK;
}

static enum status capture_begin(void *ctx)
{
    (void)ctx;
    fake.capturing = true;
    fake.recorded = 0;
    return ST_OK;
}

static enum status capture_end(void *ctx, void **ret)
{
    (void)ctx;
    fake.capturing = false;
    *ret = &fake;
    return ST_OK;
}

/* Each kernel takes 2 µs, after a gap of 0.5 µs. */
static enum status run_replay(void *ctx, void *recording)
{
    (void)ctx, (void)recording;
    static int64_t now;
    if (now < clock_ns()) now = clock_ns();
    fake.plays++;
    fake.mark = -1; /* a replay needs no marks */
    for (int i = 0; i < fake.recorded; i++) {
        now += GAP_NS;
        add_activity(fake.mark_recorded[i], "kernel", now, now + PLAYED_NS);
        now += PLAYED_NS;
    }
    return ST_OK;
}

static void forget(void *ctx, void *recording)
{
    (void)ctx, (void)recording;
}

static void profiler_range(void *ctx, bool begins)
{
    (void)ctx;
    fake.ranges += begins ? 1 : -1;
}

static enum status counters_begin(void *ctx, enum counter_set set, int64_t most)
{
    (void)ctx;
    assert_int_equal(set, COUNTERS_OF_TIME);
    if (fake.no_counters) return (fail)(ST_UNSUPPORTED, "%s", fake.no_counters);
    assert_false(fake.tracing);
    assert_true(most < MOST);
    fake.counting = true;
    fake.counted = 0;
    return ST_OK;
}

static enum status counters_end(void *ctx, struct kernel_counters *ret, int64_t *ret_kernels)
{
    (void)ctx;
    assert_true(fake.counting);
    fake.counting = false;
    *ret_kernels = fake.counted - fake.lost;
    memcpy(ret, fake.counter, (size_t)*ret_kernels * sizeof *ret);
    return ST_OK;
}

static const struct backend_counters fake_counters = {.begin = counters_begin, .end = counters_end};
static const struct backend_trace fake_trace = {
    .begin = begin, .mark = mark, .end = end, .profiler_range = profiler_range};
static const struct backend_recording fake_recording = {
    .begin = capture_begin, .end = capture_end, .replay = run_replay, .free = forget};

static void open_fake(struct config c)
{
    struct config words;
    config_init(&words);
    words.model = c.model;
    words.plan = c.plan;
    words.data.batch_size = c.data.batch_size;
    words.train.gradient_accumulation_steps = c.train.gradient_accumulation_steps;
    unsigned kinds = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;
    if (c.train.gradient_accumulation_steps > 1) kinds |= 1u << GRAPH_MICRO_MORE;
    tiny_open(&tiny, &words, kinds);
    memset(&fake, 0, sizeof fake);
    fake.mark = -1;
    fake.backend = *tiny.engine.backend;
    fake.backend.host_memory = false;
    fake.backend.trace = &fake_trace;
    fake.backend.recording = &fake_recording;
    fake.backend.counters = &fake_counters;
    tiny.engine.backend = &fake.backend;
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        tiny.engine.program.plan[kind].backend = &fake.backend;
}

static void measure(void)
{
    struct profile_options o = {.warmup = 2, .steps = STEPS, .limit_ms = 10000};
    hand_ok(profile_run(&tiny.engine, &o, &p, &arena));
}

/* One step compiles, one is captured, one is timed; there is no time for more. */
static void test_warm_up_is_limited(void **state)
{
    (void)state;
    struct profile_options o = {.warmup = 50, .steps = 1, .limit_ms = 0};
    open_fake(tiny_config());
    hand_ok(profile_run(&tiny.engine, &o, &p, &arena));
    assert_int_equal(p.by, PROFILE_TRACE);
    assert_int_equal(p.steps, 1);
    assert_int_equal(p.warmup, 3);
}

static int close_fake(void **state)
{
    (void)state;
    tiny_close(&tiny);
    arena_release(&arena);
    return 0;
}

static int64_t kernels(void)
{
    const struct engine *e = &tiny.engine;
    int64_t more = e->program.config->train.gradient_accumulation_steps - 1;
    return plan_kernels(&e->program.plan[GRAPH_MICRO]) +
           plan_kernels(&e->program.plan[GRAPH_UPDATE]) +
           (more ? more * plan_kernels(&e->program.plan[GRAPH_MICRO_MORE]) : 0);
}

static double rows_ms(void)
{
    double ms = 0;
    for (int i = 0; i < p.rows; i++) ms += p.row[i].ms;
    return ms;
}

static bool says(const char *about, const char *words)
{
    struct profile_words w = words_of(&p, &arena);
    for (int i = 0; i < w.words; i++)
        if (!strcmp(w.word[i].about, about)) return strstr(w.word[i].text, words);
    return false;
}

static void test_device_trace(void **state)
{
    (void)state;
    open_fake(tiny_config());
    measure();
    assert_int_equal(p.by, PROFILE_TRACE);
    assert_null(p.why);
    assert_false(p.replay);
    assert_int_equal(p.steps, STEPS);
    assert_int_equal(p.rows, kernels());
    assert_int_equal(p.moments, kernels());
    assert_int_equal(p.dropped, 7 * STEPS); /* in each block */
    assert_string_equal(p.dropped_why, "the buffer was full");
    assert_true(says("idle", "activities that the trace lost"));
    assert_string_equal(p.row[0].device_kernel, "kernel");
    assert_true(fabs(rows_ms() + profile_family_ms(&p, PHASES_ALL, FAMILY_IDLE) - p.step_ms.mean) <
                1e-9);
}

/* The graph is captured while the trace is active; unprofiled and profiled steps both replay it. */
static void test_replay_keeps_marks(void **state)
{
    (void)state;
    struct config c = tiny_config();
    c.train.gradient_accumulation_steps = 3;
    open_fake(c);
    tiny.config.plan.replay = true; /* no CPU supports it */
    measure();
    assert_true(p.replay);
    assert_int_equal(p.by, PROFILE_TRACE);
    assert_int_equal(p.steps, STEPS);
    assert_int_equal(fake.begun, 1 + STEPS); /* a block for each */
    assert_true(fake.plays >= 2 * STEPS);
    assert_int_equal(fake.runs, kernels()); /* only the first step is not a replay */
    assert_int_equal(p.moments, kernels());
    for (int i = 0; i < p.rows; i++) {
        int runs = p.row[i].kind == GRAPH_MICRO_MORE ? 2 : 1;
        assert_int_equal(p.row[i].runs, runs * STEPS);
        assert_true(fabs(p.row[i].each_ms[0] - 1e-6 * PLAYED_NS) < 1e-9);
    }
    assert_true(fabs(rows_ms() - 1e-6 * PLAYED_NS * (double)kernels()) < 1e-9);
    assert_true(p.gaps >= kernels() - 1);
}

static void test_events_without_trace(void **state)
{
    (void)state;
    struct config c = tiny_config();
    open_fake(c);
    tiny.config.plan.replay = true;
    fake.refuses = true;
    measure();
    assert_int_equal(p.by, PROFILE_EVENTS);
    assert_string_equal(p.why, "no trace today");
    assert_false(p.replay);
    assert_true(fake.plays >= STEPS); /* the unprofiled steps */
    assert_int_equal(p.rows, kernels());
    assert_true(says("events", "no trace today"));
    assert_true(says("events", "profiled steps cannot be"));
    for (int i = 0; i < p.rows; i++) assert_true(p.row[i].ms > 0);
}

/* More kernels than events: the ring of events loses no time. */
static void test_events_are_a_ring(void **state)
{
    (void)state;
    struct config c = tiny_config();
    c.model.n_layer = 40;
    c.plan.fusion = FUSION_PRIMITIVE;
    c.plan.flash = false;
    open_fake(c);
    fake.backend.trace = NULL;
    assert_true(kernels() > BACKEND_EVENTS + BACKEND_EVENTS / 2);
    measure();
    assert_int_equal(p.by, PROFILE_EVENTS);
    assert_int_equal(p.moments, kernels());
    for (int i = 0; i < p.moments; i++) {
        const struct profile_moment *m = &p.moment[i];
        assert_true(m->end_us > m->start_us);
        if (i) assert_true(fabs(m->start_us - m[-1].end_us) < 0.1);
    }
    /* There are no gaps between kernels, so they are most of the step. */
    assert_true(rows_ms() > 0.8 * p.step_ms.mean && rows_ms() <= p.step_ms.mean);
}

/* --- hardware counters ------------------------------------------------------------------------ */

static void measure_with_counters(void)
{
    struct profile_options o = {.warmup = 2, .steps = STEPS, .limit_ms = 10000, .counters = true};
    hand_ok(profile_run(&tiny.engine, &o, &p, &arena));
}

/* The mark of a row's node. */
static int mark_of_row(const struct profile_row *r)
{
    const struct marks m = marks_of(&tiny.engine);
    return mark_of(&m, &tiny.engine.program.plan[r->kind], r->node);
}

/* Also where the measured steps are replayed, and micro-steps run a node several times. */
static void test_counters_of_each_row(void **state)
{
    (void)state;
    struct config c = tiny_config();
    c.train.gradient_accumulation_steps = 3;
    open_fake(c);
    tiny.config.plan.replay = true;
    measure_with_counters();
    assert_true(p.replay);
    assert_null(p.counters_why);
    assert_int_equal(p.steps, STEPS); /* those with counters are not among them */
    assert_int_equal(p.counted, kernels());
    double dram = 0, sum = 0;
    for (const struct profile_row *r = p.row; r < p.row + p.rows; r++) {
        assert_int_equal(r->counted, r->kind == GRAPH_MICRO_MORE ? 2 : 1);
        assert_true(r->dram_read == 100 * (mark_of_row(r) + 1));
        assert_true(r->dram_written == 1 && r->tensor_active == 0.25);
        assert_true(r->dram_of_node == (r->bytes > 0 ? profile_dram(r) : 0));
        dram += profile_dram(r) * r->counted;
    }
    struct profile_groups g;
    profile_groups(&p, BY_FAMILY, PHASES_ALL, &g, &arena);
    for (const struct profile_group *x = g.group; x < g.group + g.groups; x++) {
        sum += x->counters.dram_read + x->counters.dram_written;
        if (x->counted_ms > 0) assert_true(fabs(x->counters.dram_busy - 0.75) < 1e-9);
    }
    assert_true(fabs(sum - dram) < 1e-6 * dram);
}

/* The longest kernel of a node has the bytes of all, as it has the plan's. */
static void test_counters_of_several_kernels(void **state)
{
    (void)state;
    open_fake(tiny_config());
    fake.others = true;
    measure_with_counters();
    assert_null(p.counters_why);
    assert_int_equal(p.counted, 2 * kernels());
    int others = 0;
    for (const struct profile_row *r = p.row; r < p.row + p.rows; r++) {
        bool other = !strcmp(r->device_kernel, "other");
        double own = 100 * (mark_of_row(r) + 1);
        others += other;
        assert_true(r->dram_read == (other ? 7 : own));
        if (other)
            assert_true(r->dram_of_node == 0);
        else if (r->bytes > 0)
            assert_true(fabs(r->dram_of_node - (own + 9)) < 1e-9);
    }
    assert_int_equal(others, kernels());
}

static void test_words_of_counters(void **state)
{
    (void)state;
    open_fake(tiny_config());
    measure_with_counters();
    struct profile_row *last = NULL;
    for (struct profile_row *r = p.row; r < p.row + p.rows; r++) {
        if (r->bytes > 0) last = r;
        r->dram_of_node = r->bytes;
    }
    assert_true(says("counters", "; no kernel moves much more than planned"));
    assert_non_null(last);
    struct profile_row *first = p.row; /* a launch that reads more than a tiny tensor */
    while (!(first->bytes > 0)) first++;
    double bytes = first->bytes;
    first->dram_of_node = 900 * (first->bytes = 1e-3);
    assert_true(says("counters", "; no kernel moves much more than planned"));
    first->dram_of_node = first->bytes = bytes;
    last->dram_of_node *= 3;
    last->dram_read = last->bytes;
    last->dram_written = 0;
    assert_true(says("counters", profile_kernel_name(last, &arena)));
    assert_true(says("counters", "moves most more than planned"));
    assert_true(says("counters", "of it in other kernels of the same operator"));
}

static void test_no_counters(void **state)
{
    (void)state;
    open_fake(tiny_config());
    measure();
    assert_int_equal(p.counted, 0);
    assert_null(p.counters_why); /* they were not requested */
    fake.no_counters = "no rights today";
    measure_with_counters();
    assert_int_equal(p.counted, 0);
    assert_true(says("counters", "no hardware counters: no rights today"));
    fake.no_counters = NULL;
    fake.lost = 1;
    measure_with_counters();
    assert_int_equal(p.counted, 0);
    assert_true(says("counters", "it is not known whose counters they are"));
    fake.refuses = true;
    measure_with_counters();
    assert_true(says("counters", "there is none: no trace today"));
    fake.backend.counters = NULL;
    measure_with_counters();
    assert_true(says("counters", "--counters needs an NVIDIA GPU"));
    assert_int_equal(p.steps, STEPS); /* the profile is whole without them */
}

/* --- how kernels are launched ----------------------------------------------------------------- */

/* A node launches "kernel" on as many blocks as its operator's number, a matmul a library's kernel
 * and "other". */
static int planned(const struct kernel *k, const struct kernel_call *call,
                   struct planned_launch ret[CALL_LAUNCHES], struct arena *a)
{
    (void)call, (void)a;
    struct planned_launch own = {.text = "a.cu", .options = "", .entry = "kernel", .registers = -1};
    own.shape = (struct kernel_shape){{(unsigned)k->op, 2, 1}, {256, 1, 1}, 1024};
    if (k->op != OP_MATMUL) {
        ret[0] = own;
        return 1;
    }
    own.entry = "other";
    ret[0] = (struct planned_launch){0};
    ret[1] = own;
    return 2;
}

static enum status compile(const struct target *t, struct planned_launch *const *launch, int n)
{
    assert_int_equal(t->arch, 90);
    for (int i = 0; i < n; i++) launch[i]->registers = 40, launch[i]->static_bytes = 512;
    return ST_OK;
}

static struct target target;

static void open_gpu(void)
{
    static const struct backend_launches launches = {.planned = planned, .compile = compile};
    open_fake(tiny_config());
    fake.others = true;
    fake.backend.launches = &launches;
    target = *tiny.engine.program.target;
    target.backend = &fake.backend;
    target.arch = 90, target.processors = 132;
    tiny.engine.program.target = &target;
}

/* A row has the launch of its node and function, with the numbers of `strobe plan --occupancy`. */
static void test_launches_of_rows(void **state)
{
    (void)state;
    struct step_launches all;
    int own = 0, of_matmul = 0;
    open_gpu();
    measure();
    hand_ok(step_launches_of(&tiny.engine.program, &all, &arena));
    for (const struct profile_row *r = p.row; r < p.row + p.rows; r++) {
        bool matmul = r->op == OP_MATMUL, other = !strcmp(r->device_kernel, "other");
        const struct step_launch *l = r->launched, *like = NULL;
        for (int i = 0; i < all.launches; i++)
            if (all.launch[i].launch.entry && all.launch[i].blocks == 2 * (int64_t)r->op &&
                !strcmp(all.launch[i].variant, r->variant))
                like = &all.launch[i];
        assert_non_null(like);
        if (matmul != other) { /* a kernel that the plan does not have */
            assert_null(l);
            continue;
        }
        own++, of_matmul += matmul;
        assert_non_null(l);
        assert_string_equal(l->launch.entry, r->device_kernel);
        assert_int_equal(l->threads, 256);
        /* 48 warps have all registers of a part of an SM: 12 x 40 x 32 of 16,384. */
        assert_true(l->known && l->occupancy.warps == 48 && l->occupancy.blocks == 6);
        assert_string_equal(l->occupancy.limit, "registers");
        assert_true(l->blocks == like->blocks && l->grid.waves == like->grid.waves);
        assert_true(fabs(l->grid.waves - 2.0 * r->op / (6 * 132)) < 1e-12);
    }
    assert_int_equal(own, kernels());
    assert_true(of_matmul > 0);
    struct profile_groups g;
    profile_groups(&p, BY_KERNEL, PHASES_ALL, &g, &arena);
    for (int i = own = 0; i < g.groups; i++) own += g.group[i].launch != NULL;
    assert_true(own > 10);
    profile_groups(&p, BY_OP, PHASES_ALL, &g, &arena);
    for (int i = 0; i < g.groups; i++) assert_null(g.group[i].launch);
}

/* An event spans all kernels of a node: only the launch of a single one is known. */
static void test_launches_by_events(void **state)
{
    (void)state;
    open_gpu();
    fake.refuses = true;
    measure();
    assert_int_equal(p.by, PROFILE_EVENTS);
    for (const struct profile_row *r = p.row; r < p.row + p.rows; r++)
        assert_true((r->launched != NULL) == (r->op != OP_MATMUL));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_fake)
    const struct CMUnitTest tests[] = {
        TEST(test_device_trace),
        TEST(test_warm_up_is_limited),
        TEST(test_replay_keeps_marks),
        TEST(test_events_without_trace),
        TEST(test_events_are_a_ring),
        TEST(test_counters_of_each_row),
        TEST(test_counters_of_several_kernels),
        TEST(test_words_of_counters),
        TEST(test_no_counters),
        TEST(test_launches_of_rows),
        TEST(test_launches_by_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
