/* Rows and idle time add up to the step whatever overlaps, and no time counts twice. */
#include "profile/collect.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "engine/tune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, STEP_NS = 1000000 };

static struct tiny tiny;
static struct arena arena;
static struct activity activity[MOST];
static struct profile_span step[2] = {{0, STEP_NS}, {STEP_NS, 2 * STEP_NS}};
static struct collected c;
static struct profile p;

static int setup(void **state)
{
    (void)state;
    struct config config = tiny_config();
    tiny_open(&tiny, &config, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    c = (struct collected){
        .marks = marks_of(&tiny.engine), .trace.activity = activity, .step = step, .steps = 1};
    p = (struct profile){.engine = &tiny.engine, .steps = 1};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_close(&tiny);
    arena_release(&arena);
    return 0;
}

/* The n-th kernel of a plan in that phase. */
static int mark(enum graph_kind kind, enum phase phase, int n)
{
    const struct plan *plan = &c.marks.engine->program.plan[kind];
    for (int id = 0; id < plan->steps; id++)
        if (plan->step[id].kernel && plan->graph->node[id].phase == phase && !n--)
            return mark_of(&c.marks, plan, id);
    fail_msg("no such kernel");
    return -1;
}

static struct activity *add_activity(int of, const char *name, int64_t start, int64_t end)
{
    struct activity *a = &activity[c.trace.activities++];
    *a =
        (struct activity){.mark = of, .replay = -1, .name = name, .start_ns = start, .end_ns = end};
    return a;
}

static double sum_of_rows(void)
{
    double ms = 0;
    for (int i = 0; i < p.rows; i++) ms += p.row[i].ms;
    return ms;
}

static const struct profile_row *row_of(int of, const char *name)
{
    for (int i = 0; i < p.rows; i++) {
        const struct profile_row *r = &p.row[i];
        bool same = !name || (r->device_kernel && !strcmp(name, r->device_kernel));
        int node, kind = of < 0 ? -1 : (int)mark_kind(&c.marks, of, &node);
        if (of < 0 ? r->node < 0 && same : r->node == node && (int)r->kind == kind && same)
            return r;
    }
    fail_msg("no row of %s", name ? name : "that node");
    return NULL;
}

static void assert_near(double x, double y)
{
    if (!(fabs(x - y) < 1e-9)) fail_msg("%.12g instead of %.12g", x, y);
}

static void test_rows_and_idle_time_are_the_step(void **state)
{
    (void)state;
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 0), NULL, 100000, 300000);
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 1), NULL, 300000, 350000);
    add_activity(mark(GRAPH_MICRO, PHASE_BACKWARD, 0), NULL, 450000, 700000);
    add_activity(mark(GRAPH_UPDATE, PHASE_UPDATE, 0), NULL, 710000, 900000);
    rows_make(&c, &p, &arena);
    assert_near(sum_of_rows(), 0.69);
    assert_near(p.step_ms.mean, 1);
    assert_near(p.idle_step_ms[0], 0.31);
    /* Idle time counts for the next activity's phase, at the end of the step for the last one's. */
    assert_near(p.mean_ms[PHASE_FORWARD], 0.35);
    assert_near(p.mean_ms[PHASE_BACKWARD], 0.35);
    assert_near(p.mean_ms[PHASE_UPDATE], 0.3);
    assert_near(p.idle_ms[PHASE_FORWARD], 0.1);
    assert_near(p.idle_ms[PHASE_BACKWARD], 0.1);
    assert_near(p.idle_ms[PHASE_UPDATE], 0.11);
    assert_int_equal(p.gaps, 4);
}

/* The n-th collective of the backward pass. */
static int collective(int n)
{
    const struct plan *plan = &c.marks.engine->program.plan[GRAPH_MICRO];
    for (int id = 0; id < plan->steps; id++)
        if (plan->step[id].kernel && plan->graph->node[id].op == OP_ALL_REDUCE && !n--)
            return mark_of(&c.marks, plan, id);
    fail_msg("no such collective");
    return -1;
}

/* Collectives that run beside other kernels have only the time in which nothing else runs. */
static void test_collectives_are_exposed_or_hidden(void **state)
{
    (void)state;
    struct engine e = tiny.engine;
    struct config config = tiny_config();
    config.ranks.count = config.train.gradient_accumulation_steps = 2;
    config.ranks.overlap = OVERLAP_PARAMETER;
    hand_ok(program_for(&e.program, &config, TINY_VOCAB, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE,
                        "cpu", &arena));
    p.engine = &e;
    c.marks = marks_of(&e);
    p.by = PROFILE_TRACE;
    add_activity(mark(GRAPH_MICRO, PHASE_BACKWARD, 0), NULL, 0, 300000);
    add_activity(collective(0), "nccl", 100000, 350000); /* 200 us hidden, 50 exposed */
    add_activity(collective(1), "nccl", 360000, 900000); /* 370 hidden, 170 exposed */
    add_activity(mark(GRAPH_MICRO, PHASE_BACKWARD, 1), NULL, 400000, 750000);
    add_activity(mark(GRAPH_MICRO, PHASE_BACKWARD, 1), NULL, 780000, 800000);
    add_activity(mark(GRAPH_UPDATE, PHASE_UPDATE, 0), NULL, 950000, STEP_NS);
    rows_make(&c, &p, &arena);
    assert_near(row_of(collective(0), "nccl")->ms, 0.05);
    assert_near(row_of(collective(0), "nccl")->hidden_ms, 0.2);
    assert_near(row_of(collective(1), "nccl")->ms, 0.04 + 0.03 + 0.1);
    assert_near(row_of(collective(1), "nccl")->hidden_ms, 0.37);
    assert_near(row_of(mark(GRAPH_MICRO, PHASE_BACKWARD, 1), NULL)->ms, 0.37);
    assert_near(p.idle_step_ms[0], 0.01 + 0.05);
    assert_near(sum_of_rows() + p.idle_step_ms[0], 1);
    assert_near(p.mean_ms[PHASE_BACKWARD], 0.3 + 0.05 + 0.01 + 0.17 + 0.37);
    assert_near(p.mean_ms[PHASE_UPDATE], 0.05 + 0.05);
    assert_int_equal(p.gaps, 2);
    for (int i = 0; i < p.moments; i++)
        assert_int_equal(p.moment[i].lane, p.row[p.moment[i].row].family == FAMILY_COMMUNICATION);
}

/* The rest counts for no step: the next step may not be profiled. */
static void test_time_after_the_step_is_cut(void **state)
{
    (void)state;
    int update = mark(GRAPH_UPDATE, PHASE_UPDATE, 0);
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 0), NULL, 0, 300000);
    add_activity(update, NULL, 300000, STEP_NS + 400000);
    rows_make(&c, &p, &arena);
    assert_near(p.step_ms.mean, 1);
    assert_near(row_of(update, NULL)->ms, 0.7);
    assert_near(row_of(update, NULL)->hidden_ms, 0);
    assert_near(row_of(update, NULL)->each_ms[0], 1.1);
    assert_near(p.idle_step_ms[0], 0);
}

/* A short kernel with little cost is bound by latency; without a cost the bound is unknown. */
static void test_without_cost_there_is_no_bound(void **state)
{
    (void)state;
    static const struct machine quick = {.copies = 1, .copy = {{1 << 20, 1e15, 1e15}}};
    int forward = mark(GRAPH_MICRO, PHASE_FORWARD, 2);
    add_activity(forward, "prepare", 0, 1000);
    add_activity(forward, "matmul", 1000, 4000);
    p.machine = &quick;
    rows_make(&c, &p, &arena);
    assert_int_equal(row_of(forward, "prepare")->bound, BOUND_NONE);
    assert_int_equal(row_of(forward, "matmul")->bound, BOUND_LATENCY);
}

/* A kernel of very little work that other processes delayed is not bound by its work. */
static void test_little_work_is_no_bound(void **state)
{
    (void)state;
    static const struct machine quick = {.copies = 1, .copy = {{1 << 20, 1e15, 1e15}}},
                                slow = {.copies = 1, .copy = {{1 << 20, 1e6, 1e6}}};
    int forward = mark(GRAPH_MICRO, PHASE_FORWARD, 2);
    add_activity(forward, "matmul", 0, 900000);
    p.machine = &quick;
    rows_make(&c, &p, &arena);
    assert_int_equal(row_of(forward, "matmul")->bound, BOUND_LATENCY);
    p.machine = &slow;
    p.rows = 0;
    rows_make(&c, &p, &arena);
    assert_int_equal(row_of(forward, "matmul")->bound, BOUND_MEMORY);
}

/* Times are rounded: the copy begins before the end of the kernel that it waited for. */
static void test_a_copy_after_a_kernel_does_not_overlap(void **state)
{
    (void)state;
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 0), "matmul", 0, 600000);
    add_activity(-1, "copy", 599200, 700000)->kind = ACTIVITY_COPY;
    add_activity(-1, "copy", 690000, 700000)->kind = ACTIVITY_COPY;
    rows_make(&c, &p, &arena);
    assert_int_equal(p.moment[1].lane, 0);
    assert_int_equal(p.moment[2].lane, 1);
}

static void test_overlapping_time_counts_once(void **state)
{
    (void)state;
    int forward = mark(GRAPH_MICRO, PHASE_FORWARD, 0);
    add_activity(forward, "matmul", 0, 600000);
    add_activity(-1, "copy", 100000, 200000)->kind =
        ACTIVITY_COPY; /* all of it overlaps the matmul */
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 1), "norm", 500000, 800000);
    rows_make(&c, &p, &arena);
    assert_near(sum_of_rows() + p.idle_step_ms[0], 1);
    assert_near(row_of(forward, NULL)->ms, 0.6);
    assert_near(row_of(-1, "copy")->ms, 0);
    assert_near(row_of(-1, "copy")->hidden_ms, 0.1);
    assert_near(row_of(mark(GRAPH_MICRO, PHASE_FORWARD, 1), NULL)->ms, 0.2);
    assert_near(row_of(mark(GRAPH_MICRO, PHASE_FORWARD, 1), NULL)->each_ms[0], 0.3);
    assert_near(p.idle_step_ms[0], 0.2);
    assert_int_equal(p.moment[1].lane, 1);
    assert_int_equal(p.moment[0].lane + p.moment[2].lane, 0);
}

static void test_a_node_of_several_kernels_counts_its_work_once(void **state)
{
    (void)state;
    int forward = mark(GRAPH_MICRO, PHASE_FORWARD, 2), node;
    add_activity(forward, "prepare", 0, 100000);
    add_activity(forward, "matmul", 100000, 600000);
    add_activity(forward, "prepare", 600000, 700000);
    rows_make(&c, &p, &arena);
    const struct cost whole =
        tiny.engine.program.plan[mark_kind(&c.marks, forward, &node)].step[node].cost;
    assert_int_equal(p.rows, 2);
    assert_near(row_of(forward, "prepare")->ms, 0.2);
    assert_int_equal(row_of(forward, "prepare")->runs, 2);
    assert_true(row_of(forward, "prepare")->bytes == 0);
    assert_true(whole.bytes > 0 && row_of(forward, "matmul")->bytes == whole.bytes);
    assert_true(row_of(forward, "matmul")->flops == whole.flops);
    /* Its rate uses the time of all kernels of the node. */
    struct profile_groups g;
    profile_groups(&p, BY_KERNEL, PHASES_ALL, &g, &arena);
    assert_near(g.group[0].ms, 0.5);
    assert_near(g.group[0].work_ms, 0.7);
    assert_near(g.group[1].work_ms, 0);
    profile_groups(&p, BY_PHASE, PHASES_ALL, &g, &arena);
    assert_near(g.group[0].work_ms, g.group[0].ms);
}

/* A kernel without FLOPs and bytes has no bound. */
static void test_a_kernel_without_work_has_no_bound(void **state)
{
    (void)state;
    struct machine machine = {.copy = {{1 << 14, 1e15, 1e15}}, .copies = 1};
    int one = mark(GRAPH_MICRO, PHASE_FORWARD, 2), other = mark(GRAPH_MICRO, PHASE_FORWARD, 3);
    p.machine = &machine;
    add_activity(one, "memset", 0, 2000);
    add_activity(one, "matmul", 2000, 6000);
    add_activity(other, "long", 6000, 306000);
    add_activity(other, "short", 306000, 308000);
    rows_make(&c, &p, &arena);
    assert_int_equal(row_of(one, "memset")->bound, BOUND_NONE);
    assert_int_equal(row_of(one, "matmul")->bound, BOUND_LATENCY);
    assert_int_equal(row_of(other, "long")->bound, BOUND_LATENCY);
    assert_int_equal(row_of(other, "short")->bound, BOUND_NONE);
}

static void test_unmarked_activities_have_a_row(void **state)
{
    (void)state;
    add_activity(-1, "copy", 100000, 150000);
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 0), NULL, 200000, 600000);
    add_activity(-1, "copy", 700000, 800000);
    add_activity(mark(GRAPH_UPDATE, PHASE_UPDATE, 0), NULL, 850000, 900000);
    rows_make(&c, &p, &arena);
    assert_int_equal(p.rows, 4); /* the copy belongs to the phase of the next activity */
    assert_near(profile_family_ms(&p, PHASES_ALL, FAMILY_OTHER), 0.15);
    assert_near(profile_family_ms(&p, 1 << PHASE_FORWARD, FAMILY_OTHER), 0.05);
    assert_near(profile_family_ms(&p, 1 << PHASE_UPDATE, FAMILY_OTHER), 0.1);
    assert_near(sum_of_rows() + p.idle_step_ms[0], 1);
}

static void test_means_are_of_all_steps_and_the_timeline_of_the_median(void **state)
{
    (void)state;
    int forward = mark(GRAPH_MICRO, PHASE_FORWARD, 0);
    c.steps = p.steps = 2;
    add_activity(forward, NULL, 0, 400000);
    add_activity(forward, NULL, STEP_NS + 100000, STEP_NS + 700000);
    rows_make(&c, &p, &arena);
    assert_int_equal(p.rows, 1);
    assert_near(p.row[0].ms, 0.5);
    assert_near(p.row[0].step_ms[0], 0.4);
    assert_near(p.row[0].step_ms[1], 0.6);
    assert_int_equal(p.moments, 1);
    assert_near(p.moment[0].end_us - p.moment[0].start_us, p.shown_step ? 600 : 400);
}

static void step_of(int iteration, int64_t start, int64_t end)
{
    int64_t third = (end - start) / 3;
    add_activity(steps_mark(&c.marks, iteration), "copy", start, start + 10)->kind = ACTIVITY_COPY;
    add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, 0), "forward", start + 20, start + third);
    add_activity(mark(GRAPH_UPDATE, PHASE_UPDATE, 0), "update", end - third, end);
}

/* Inputs and idle time before them count for the new step, the result for the one before. */
static void test_a_step_begins_with_its_inputs(void **state)
{
    (void)state;
    struct seen_step seen[MOST];
    step_of(7, 1000, 2000);
    activity[3] = activity[2];
    c.trace.activities = 2;
    add_activity(steps_mark(&c.marks, 8), "staged", 1500, 1510); /* early: the update follows */
    c.trace.activities = 4;
    add_activity(-1, "result", 2010, 2020);
    step_of(8, 2100, 3000);
    add_activity(steps_mark(&c.marks, 8), "result", 3010, 3020); /* copied while its mark was set */
    step_of(9, 3100, 4000);
    assert_int_equal(steps_find(&c.marks, &c.trace, 7, seen, MOST), 2);
    assert_int_equal(seen[0].iteration, 7);
    assert_int_equal(seen[0].span.start_ns, 1000);
    assert_int_equal(seen[0].span.end_ns, 2020);
    assert_int_equal(seen[1].iteration, 8);
    assert_int_equal(seen[1].span.start_ns, 2020);
    assert_int_equal(seen[1].span.end_ns, 3020);
    for (int64_t i = 0; i < c.trace.activities; i++) assert_true(activity[i].mark < c.marks.marks);
}

/* The kernels of a replay are unknown: its step is skipped, and not merged with a neighbor. */
static void test_a_step_with_an_unmatched_replay_is_skipped(void **state)
{
    (void)state;
    struct seen_step seen[MOST];
    step_of(0, 1000, 2000);
    add_activity(steps_mark(&c.marks, 1), "copy", 2100, 2110);
    add_activity(-1, "forward", 2120, 2500)->unmatched = true;
    add_activity(-1, "update", 2500, 3000)->unmatched = true;
    activity[4].replay = activity[5].replay = 1;
    step_of(2, 3100, 4000);
    step_of(3, 4100, 5000);
    assert_int_equal(steps_find(&c.marks, &c.trace, 0, seen, MOST), 2);
    assert_int_equal(seen[0].iteration, 0);
    assert_int_equal(seen[0].span.end_ns, 2000);
    assert_int_equal(seen[1].iteration, 2);
    assert_int_equal(seen[1].span.start_ns, 3000);
    assert_int_equal(seen[1].span.end_ns, 4000);
}

/* If the inputs are missing too, two steps look like one. */
static void test_an_unmatched_replay_without_inputs_is_skipped(void **state)
{
    (void)state;
    struct seen_step seen[MOST];
    step_of(0, 1000, 2000);
    add_activity(-1, "all", 2100, 3000)->unmatched = true;
    step_of(2, 3100, 4000);
    step_of(3, 4100, 5000);
    assert_int_equal(steps_find(&c.marks, &c.trace, 0, seen, MOST), 1);
    assert_int_equal(seen[0].iteration, 2);
}

/* Shares add up to 1 for each grouping, for a phase and for the step. */
static void test_shares_add_up(void **state)
{
    (void)state;
    static const unsigned phases[] = {PHASES_ALL, 1 << PHASE_FORWARD, 1 << PHASE_UPDATE};
    int64_t now = 1000;
    for (int i = 0; i < 8; i++, now += 40000)
        add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, i), NULL, now, now + 30000);
    for (int i = 0; i < 8; i++, now += 50000)
        add_activity(mark(GRAPH_MICRO, PHASE_BACKWARD, i), NULL, now, now + 50000);
    add_activity(mark(GRAPH_UPDATE, PHASE_UPDATE, 0), NULL, now + 1000, now + 100000);
    rows_make(&c, &p, &arena);
    for (int by = 0; by < PROFILE_BYS; by++)
        for (int k = 0; k < COUNT_OF(phases); k++) {
            struct profile_groups g;
            double share = 0, ms = 0;
            profile_groups(&p, (enum profile_by)by, phases[k], &g, &arena);
            for (int i = 0; i < g.groups; i++) {
                if (g.group[i].depth) continue;
                share += g.group[i].share;
                ms += g.group[i].ms;
            }
            assert_near(share, 1);
            assert_near(ms, profile_ms(&p, phases[k]));
            assert_string_equal(g.group[g.groups - 1].name, "idle");
        }
}

/* The parts of a range add up to it. */
static void test_ranges_contain_their_parts(void **state)
{
    (void)state;
    struct profile_groups g;
    for (int i = 0; i < 12; i++)
        add_activity(mark(GRAPH_MICRO, PHASE_FORWARD, i), NULL, 50000 * i,
                     50000 * i + 1000 * (i + 1));
    rows_make(&c, &p, &arena);
    profile_groups(&p, BY_RANGE, PHASES_ALL, &g, &arena);
    assert_string_equal(g.group[0].name, "forward");
    for (int i = 0; i < g.groups; i++) {
        double parts = 0;
        int depth = g.group[i].depth, n = 0;
        for (int k = i + 1; k < g.groups && g.group[k].depth > depth; k++)
            if (g.group[k].depth == depth + 1) parts += g.group[k].ms, n++;
        if (n) assert_near(parts, g.group[i].ms);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_rows_and_idle_time_are_the_step),
        TEST(test_collectives_are_exposed_or_hidden),
        TEST(test_time_after_the_step_is_cut),
        TEST(test_without_cost_there_is_no_bound),
        TEST(test_little_work_is_no_bound),
        TEST(test_a_copy_after_a_kernel_does_not_overlap),
        TEST(test_overlapping_time_counts_once),
        TEST(test_a_node_of_several_kernels_counts_its_work_once),
        TEST(test_a_kernel_without_work_has_no_bound),
        TEST(test_unmarked_activities_have_a_row),
        TEST(test_means_are_of_all_steps_and_the_timeline_of_the_median),
        TEST(test_a_step_begins_with_its_inputs),
        TEST(test_a_step_with_an_unmatched_replay_is_skipped),
        TEST(test_an_unmatched_replay_without_inputs_is_skipped),
        TEST(test_shares_add_up),
        TEST(test_ranges_contain_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
