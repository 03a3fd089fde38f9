/* The memory timeline, on graphs whose bytes are counted by hand and on a GPT. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "plan/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N = 64, BYTES = N * 4 };

/* One row per step, one column per part, in units of one vector. */
static void expect(const struct timeline *t, int steps, const int rows[][5])
{
    static const enum memory_part parts[] = {MEMORY_INPUTS, MEMORY_SAVED, MEMORY_FORWARD,
                                             MEMORY_BACKWARD, MEMORY_UNUSED};
    assert_int_equal(t->steps, steps);
    for (int id = 0; id < steps; id++)
        for (int i = 0; i < COUNT_OF(parts); i++)
            if (t->bytes[id][parts[i]] != rows[id][i] * BYTES)
                fail_msg("step %d: %s are %lld bytes, not %d", id, memory_part_name(parts[i]),
                         (long long)t->bytes[id][parts[i]], rows[id][i] * BYTES);
}

/* x -> a -> b -> c, and backward a * c -> d -> e: c reuses b, and d and e reuse a. */
static void hand_graph(struct hand *h)
{
    hand_init(h);
    struct graph *g = &h->graph;
    value x = g_input(g, "x", type_1d(DT_F32, N)), a = g_exp(g, x);
    value c = g_scale(g, g_exp(g, a), 2);
    g->phase = PHASE_BACKWARD;
    graph_output(g, "e", g_exp(g, g_mul(g, a, c)));
}

static void test_by_hand(void **state)
{
    (void)state;
    struct hand h;
    struct timeline t;
    hand_graph(&h);
    hand_plan(&h, NULL);
    plan_timeline(&h.plan, NULL, &t, &h.arena);
    const int rows[][5] = {
        {1, 0, 0, 0, 1}, /* x */
        {1, 1, 0, 0, 0}, /* a is saved; x is live while it is read */
        {0, 1, 1, 0, 0}, /* b: c reuses it before the backward pass starts */
        {0, 2, 0, 0, 0}, /* a, c */
        {0, 1, 0, 1, 0}, /* d in place of a */
        {0, 0, 0, 1, 1}, /* e in place of d */
    };
    expect(&t, 6, rows);
    assert_int_equal(t.peak, 1);
    assert_int_equal(t.peak_bytes, 2 * BYTES);
    assert_int_equal(t.total_bytes, 2 * BYTES);
    assert_int_equal(t.total_bytes - t.bytes[5][MEMORY_UNUSED], BYTES);
    hand_close(&h);
}

/* Values that keep their bytes until the end of the plan still have one live range. */
static void test_without_reuse(void **state)
{
    (void)state;
    struct hand h;
    struct timeline t;
    hand_graph(&h);
    hand_plan(&h, &(struct plan_options){.no_reuse = true});
    plan_timeline(&h.plan, NULL, &t, &h.arena);
    const int rows[][5] = {
        {1, 0, 0, 0, 5}, /* x */
        {1, 1, 0, 0, 4}, /* a */
        {0, 1, 1, 0, 4}, /* b */
        {0, 2, 1, 0, 3}, /* a, c, and b while it is read */
        {0, 2, 0, 1, 3}, /* d, and a and c while they are read */
        {0, 0, 0, 2, 4}, /* d, e */
    };
    expect(&t, 6, rows);
    hand_close(&h);
}

/* With the storage blocks of a program, weights and the rest of a larger arena are present at each
 * step. */
static void test_blocks_are_present_at_each_step(void **state)
{
    (void)state;
    struct hand h;
    struct timeline t;
    hand_graph(&h);
    hand_plan(&h, NULL);
    const struct storage_blocks blocks = {.bytes = {[STORAGE_WEIGHTS] = 1000,
                                                    [STORAGE_GRADIENTS] = 2000,
                                                    [STORAGE_MOMENT1] = 300,
                                                    [STORAGE_MOMENT2] = 400,
                                                    [STORAGE_COPY] = 50,
                                                    [STORAGE_PACKED] = 60,
                                                    [STORAGE_STAGED] = 7,
                                                    [STORAGE_ARENA] = 4096}};
    plan_timeline(&h.plan, blocks.bytes, &t, &h.arena);
    for (int id = 0; id < t.steps; id++) {
        int64_t sum = 0;
        for (int i = 0; i < MEMORY_PARTS; i++) sum += t.bytes[id][i];
        assert_int_equal(sum, 1000 + 2000 + 300 + 400 + 50 + 60 + 7 + 4096);
        assert_int_equal(t.bytes[id][MEMORY_WEIGHTS], 1000);
        assert_int_equal(t.bytes[id][MEMORY_GRADIENTS], 2000);
        assert_int_equal(t.bytes[id][MEMORY_OPTIMIZER], 700);
        assert_int_equal(t.bytes[id][MEMORY_COPIES], 110);
    }
    assert_int_equal(t.bytes[0][MEMORY_INPUTS], 7 + BYTES);
    assert_int_equal(t.peak_bytes, 1000 + 2000 + 700 + 110 + 7 + 2 * BYTES);
    assert_int_equal(t.total_bytes - t.peak_bytes, 4096 - 2 * BYTES);
    hand_close(&h);
}

/* Live bytes at a step, counted value by value. */
static int64_t alive_at(const struct plan *p, int step)
{
    int64_t bytes = p->step[step].kernel ? p->step[step].scratch_bytes : 0;
    for (int v = 1; v < p->graph->values; v++) {
        const struct span *s = &p->span[v];
        if (s->root == v && s->storage == STORAGE_ARENA && s->first <= step && step <= s->last)
            bytes += s->bytes;
    }
    return bytes;
}

/* At every rung of a GPT, the parts at each step equal the live bytes. The parts of the backward
 * pass are zero before it starts. */
static void test_of_a_gpt(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct config c = tiny_config();
        struct tiny y;
        struct timeline t;
        bool seen[MEMORY_PARTS] = {0};
        c.model.dropout = 0.1;
        c.plan.fusion = (enum fusion)fusion;
        c.plan.flash = fusion == FUSION_FULL;
        tiny_open(&y, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
        const struct plan *p = &y.engine.program.plan[GRAPH_MICRO];
        plan_timeline(p, NULL, &t, &y.arena);
        for (int id = 0; id < p->steps; id++) {
            assert_int_equal(t.total_bytes - t.bytes[id][MEMORY_UNUSED], alive_at(p, id));
            for (int i = 0; i < MEMORY_PARTS; i++) seen[i] |= t.bytes[id][i] > 0;
            if (p->graph->node[id].phase == PHASE_FORWARD)
                assert_int_equal(t.bytes[id][MEMORY_BACKWARD], 0);
        }
        assert_true(seen[MEMORY_INPUTS] && seen[MEMORY_SAVED] && seen[MEMORY_FORWARD] &&
                    seen[MEMORY_BACKWARD]);
        assert_false(seen[MEMORY_UPDATE]);
        int last = p->steps - 1;
        assert_int_equal(t.bytes[last][MEMORY_SAVED], 0);
        plan_timeline(&y.engine.program.plan[GRAPH_UPDATE], y.engine.program.bytes, &t, &y.arena);
        assert_int_equal(t.total_bytes, program_bytes(&y.engine.program));
        tiny_close(&y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_without_reuse),
        cmocka_unit_test(test_blocks_are_present_at_each_step),
        cmocka_unit_test(test_of_a_gpt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
