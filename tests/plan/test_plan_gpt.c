/* Plans of a GPT: bitwise the same results for any placement, the memory map, and planning time.
 * test: alone; it has limits of time */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "base/clock.h"
#include "base/str.h"
#include "plan/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A second plan of the engine's micro-step, with other options and separate memory. */
struct again {
    struct plan plan;
    struct storage_blocks storage;
};

static void feed_as(const struct tiny *t, struct again *r)
{
    const struct graph *g = r->plan.graph;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_INPUT) continue;
        memcpy(plan_address(&r->plan, n->out[0]),
               plan_address(&t->engine.program.plan[GRAPH_MICRO], n->out[0]),
               (size_t)type_bytes(graph_type(g, n->out[0])));
    }
}

static void plan_again(struct tiny *t, const struct plan_options *o, struct again *r)
{
    struct engine *e = &t->engine;
    hand_ok(plan_build(&r->plan, &e->program.graph[GRAPH_MICRO], e->program.target, o, &t->arena));
    r->storage = (struct storage_blocks){.backend = e->backend, .context = e->context};
    storage_reserve(&r->storage, &r->plan);
    hand_ok(storage_alloc(&r->storage));
    hand_ok(plan_bind(&r->plan, &r->storage));
    memcpy(r->storage.base[STORAGE_WEIGHTS], e->storage.base[STORAGE_WEIGHTS],
           (size_t)r->storage.bytes[STORAGE_WEIGHTS]);
}

static void compare(struct tiny *t, const char *what, const struct plan_options *o)
{
    struct again r;
    struct engine *e = &t->engine;
    plan_again(t, o, &r);
    for (int step = 0; step < 3; step++) {
        tiny_feed(t, GRAPH_MICRO, step);
        feed_as(t, &r); /* before the run, which may reuse the bytes of inputs */
        hand_ok(plan_run(&e->program.plan[GRAPH_MICRO], NULL));
        hand_ok(plan_run(&r.plan, NULL));
        if (memcmp(plan_output(&e->program.plan[GRAPH_MICRO], "loss"), plan_output(&r.plan, "loss"),
                   4))
            fail_msg("%s: the loss of step %d differs", what, step);
        if (memcmp(e->storage.base[STORAGE_GRADIENTS], r.storage.base[STORAGE_GRADIENTS],
                   (size_t)r.storage.bytes[STORAGE_GRADIENTS]))
            fail_msg("%s: a gradient of step %d differs", what, step);
    }
    plan_release(&r.plan);
    storage_free(&r.storage);
}

/* Compares a plan with the given options with the engine's, which reuses memory and has the fastest
 * kernels. */
static void test_placement_changes_no_bit(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            struct config c = tiny_config();
            struct tiny t;
            c.model.dropout = 0.2;
            c.model.bias = true;
            c.plan.fusion = (enum fusion)fusion;
            c.plan.flash = flash;
            tiny_open(&t, &c, 1u << GRAPH_MICRO);
            compare(&t, "no_reuse", &(struct plan_options){.no_reuse = true});
            compare(&t, "poison", &(struct plan_options){.poison = true});
            compare(&t, "both", &(struct plan_options){.no_reuse = true, .poison = true});
            tiny_close(&t);
        }
}

/* Compares a plan with reuse and one without; both use the reference kernels. */
static void test_reference_kernels_too(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    struct again plain, planned;
    c.model.dropout = 0.2;
    tiny_open(&t, &c, 1u << GRAPH_MICRO);
    plan_again(&t, &(struct plan_options){.variant = "ref", .no_reuse = true}, &plain);
    plan_again(&t, &(struct plan_options){.variant = "ref"}, &planned);
    for (int id = 0; id < planned.plan.steps; id++)
        if (planned.plan.step[id].kernel)
            assert_string_equal(planned.plan.step[id].kernel->variant, "ref");
    tiny_feed(&t, GRAPH_MICRO, 1);
    feed_as(&t, &plain);
    feed_as(&t, &planned);
    hand_ok(plan_run(&plain.plan, NULL));
    hand_ok(plan_run(&planned.plan, NULL));
    assert_memory_equal(plan_output(&plain.plan, "loss"), plan_output(&planned.plan, "loss"), 4);
    assert_memory_equal(plain.storage.base[STORAGE_GRADIENTS],
                        planned.storage.base[STORAGE_GRADIENTS],
                        (size_t)plain.storage.bytes[STORAGE_GRADIENTS]);
    assert_true(planned.plan.arena_bytes * 3 < plain.plan.arena_bytes * 2);
    plan_release(&plain.plan);
    plan_release(&planned.plan);
    storage_free(&plain.storage);
    storage_free(&planned.storage);
    tiny_close(&t);
}

/* Gradients are computed in place: a copy remains only if one value is stored twice. */
static void test_gradients_need_no_copies(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    c.model.bias = true;
    tiny_open(&t, &c, 1u << GRAPH_MICRO);
    const struct plan *p = &t.engine.program.plan[GRAPH_MICRO];
    for (int id = 0; id < p->steps; id++)
        if (p->graph->node[id].op == OP_STORE && p->step[id].kernel)
            fail_msg("a copy to %s", p->graph->node[id].scope);
    tiny_close(&t);
}

struct big {
    struct arena arena;
    struct model model;
    struct graph graph;
    struct plan plan;
};

/* Plans a micro-step of this model without running it. */
static void plan_big(struct big *b, const struct config *c, int64_t vocab)
{
    *b = (struct big){0};
    model_init(&b->model, &c->model, vocab, 1, &b->arena);
    hand_ok(program_graph(GRAPH_MICRO, c, &b->model, NULL, NULL, NULL, &b->graph, &b->arena));
    static struct target null;
    null.backend = backend_find("null");
    hand_ok(plan_build(&b->plan, &b->graph, &null, NULL, &b->arena));
}

static void release_big(struct big *b)
{
    plan_release(&b->plan);
    arena_release(&b->arena);
}

static struct config shape(int64_t n_layer, int64_t n_head, int64_t n_embd)
{
    struct config c = tiny_config();
    c.model.n_layer = n_layer;
    c.model.n_head = n_head;
    c.model.n_embd = n_embd;
    c.model.block_size = 1024;
    c.data.batch_size = 4;
    return c;
}

static void test_memory_map_of_slow_attention(void **state)
{
    (void)state;
    int64_t bytes[2];
    for (int flash = 0; flash < 2; flash++) {
        struct config c = shape(3, 4, 64);
        struct str s = {0};
        struct big b;
        c.plan.flash = flash;
        plan_big(&b, &c, 65);
        plan_print_memory(&b.plan, 1000, &s);
        assert_int_equal(strstr(str_text(&s), "(4,4,1024,1024)") == NULL, flash);
        if (!flash)
            assert_non_null(strstr(str_text(&s), "64.0 MiB")); /* 4 * 4 * 1024 * 1024 floats */
        assert_non_null(strstr(str_text(&s), "peak at step"));
        bytes[flash] = b.plan.arena_bytes;
        str_release(&s);
        release_big(&b);
    }
    assert_true(bytes[0] > 4 * bytes[1]);
}

static void test_arena_is_hardly_more_than_the_peak(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct config c = shape(2, 4, 64);
        struct timeline t;
        struct big b;
        c.model.dropout = 0.1;
        c.plan.fusion = (enum fusion)fusion;
        c.plan.flash = fusion == FUSION_FULL;
        plan_big(&b, &c, 65);
        plan_timeline(&b.plan, NULL, &t, &b.arena);
        assert_int_equal(t.total_bytes, b.plan.arena_bytes);
        assert_true(t.peak_bytes <= b.plan.arena_bytes);
        assert_true(b.plan.arena_bytes < t.peak_bytes + t.peak_bytes / 50);
        release_big(&b);
    }
}

/* `b` is computed in place of a and `c` in place of b, so three values occupy the same bytes. */
static void test_holders_change(void **state)
{
    (void)state;
    struct hand h;
    hand_init(&h);
    struct graph *g = &h.graph;
    value x = g_input(g, "x", type_1d(DT_F32, 64)), a = g_exp(g, x);
    value view = g_reshape(g, a, type_2d(DT_F32, 8, 8)), b = g_scale(g, view, 2);
    graph_output(g, "c", g_exp(g, b));
    hand_plan(&h, NULL);
    struct residencies residencies;
    plan_residencies(&h.plan, &residencies, &h.arena);
    assert_int_equal(residencies.n, 4); /* not the view */
    const struct residency *residency = residencies.residency;
    for (int i = 0; i < 4; i++) {
        const int expected[4][3] = {{x.i, 0, 1}, {a.i, 1, 2}, {b.i, 3, 3}, {b.i + 1, 4, 5}};
        assert_int_equal(residency[i].v.i, expected[i][0]);
        assert_int_equal(residency[i].first, expected[i][1]);
        assert_int_equal(residency[i].last, expected[i][2]);
    }
    assert_int_equal(residency[1].offset, residency[2].offset);
    hand_close(&h);
}

/* plan_residencies lists slow attention's probabilities as saved, not the scores in the same
 * bytes. */
static void test_kept_values_have_names(void **state)
{
    (void)state;
    struct config c = shape(2, 4, 64);
    struct residencies residencies;
    struct big b;
    int kept = 0;
    c.plan.flash = false;
    plan_big(&b, &c, 65);
    plan_residencies(&b.plan, &residencies, &b.arena);
    for (int i = 0; i < residencies.n; i++) {
        const struct residency *s = &residencies.residency[i];
        if (s->part != MEMORY_SAVED || s->bytes < INT64_C(4) * 4 * 1024 * 1024 * 4) continue;
        assert_int_equal(graph_producer(b.plan.graph, s->v)->op, OP_SCORE_SOFTMAX);
        kept++;
    }
    assert_int_equal(kept, 2);
    release_big(&b);
}

static void test_memory_map_adds_up(void **state)
{
    (void)state;
    struct config c = shape(2, 4, 64);
    struct big b;
    plan_big(&b, &c, 65);
    struct str s = {0};
    plan_print_memory(&b.plan, 2, &s);
    int lines = 0;
    for (const char *at = str_text(&s); *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 2 + 2 + 1); /* what, header, rows, "... smaller values" */
    assert_non_null(strstr(str_text(&s), "smaller values"));
    str_release(&s);
    release_big(&b);
}

/* Every two more layers add the same number of bytes, so no value is kept unnecessarily. */
static void test_memory_grows_with_layers(void **state)
{
    (void)state;
    int64_t bytes[3];
    for (int i = 0; i < 3; i++) {
        struct config c = shape(4 + 2 * i, 4, 64);
        struct big b;
        plan_big(&b, &c, 65);
        bytes[i] = b.plan.arena_bytes;
        release_big(&b);
    }
    int64_t first = bytes[1] - bytes[0], second = bytes[2] - bytes[1];
    assert_true(first > 0);
    assert_true(first - second < first / 50 && second - first < first / 50);
}

static void test_large_model_is_planned_quickly(void **state)
{
    (void)state;
    struct config c = shape(48, 25, 1600); /* GPT-2 XL */
    c.model.bias = true;
    double worst = 0;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct big b;
        c.plan.fusion = (enum fusion)fusion;
        c.plan.flash = fusion == FUSION_FULL;
        int64_t start = clock_ns();
        plan_big(&b, &c, 50257);
        double ms = clock_ms(start, clock_ns());
        if (fusion == FUSION_FULL) assert_int_equal(model_count(&b.model, true), 1557611200);
        if (ms > worst) worst = ms;
        release_big(&b);
    }
    print_message("GPT-2 XL planned in at most %.0f ms\n", worst);
    assert_true(worst < 2000);
}

static void test_plan_table(void **state)
{
    (void)state;
    struct config c = shape(2, 4, 64);
    struct big b;
    plan_big(&b, &c, 65);
    struct str s = {0};
    char end[64];
    plan_print(&b.plan, &s);
    int lines = 0;
    for (const char *at = str_text(&s); *at; at++) lines += *at == '\n';
    assert_int_equal(lines, plan_kernels(&b.plan) + 2); /* header, rows, sum */
    snprintf(end, sizeof end, "\n%d kernels, ", plan_kernels(&b.plan));
    assert_non_null(strstr(str_text(&s), end));
    assert_non_null(strstr(str_text(&s), "h.1.attn"));
    str_release(&s);
    release_big(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_placement_changes_no_bit),
        cmocka_unit_test(test_reference_kernels_too),
        cmocka_unit_test(test_gradients_need_no_copies),
        cmocka_unit_test(test_memory_map_of_slow_attention),
        cmocka_unit_test(test_arena_is_hardly_more_than_the_peak),
        cmocka_unit_test(test_holders_change),
        cmocka_unit_test(test_kept_values_have_names),
        cmocka_unit_test(test_memory_map_adds_up),
        cmocka_unit_test(test_memory_grows_with_layers),
        cmocka_unit_test(test_large_model_is_planned_quickly),
        cmocka_unit_test(test_plan_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
