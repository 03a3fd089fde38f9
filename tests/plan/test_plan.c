/* Memory reuse in plans: which reuse is permitted and which is not. Results are bitwise the same
 * for any placement. */
#include "../support/hand.h"
#include "backend/backend.h"
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct plan_options NO_REUSE = {.no_reuse = true};
static const struct plan_options POISON = {.poison = true};

static value vector(struct hand *s, const char *name, int64_t n)
{
    return g_input(&s->graph, name, type_1d(DT_F32, n));
}

static value weights(struct hand *s, const char *name, int64_t n, int64_t offset)
{
    return g_leaf(&s->graph, STORAGE_WEIGHTS, name, type_1d(DT_F32, n), offset);
}

static const struct span *span_of(const struct hand *s, value v)
{
    return &s->plan.span[v.i];
}

static void test_chain_runs_in_place(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    struct graph *g = &s.graph;
    value x = vector(&s, "x", 1024), a = g_exp(g, x), b = g_scale(g, a, 2), c = g_exp(g, b);
    value d = g_reshape(g, c, type_2d(DT_F32, 32, 32));
    graph_output(g, "d", d);
    hand_plan(&s, NULL);
    assert_int_not_equal(span_of(&s, a)->root, x.i); /* bytes of an input must not be reused */
    assert_int_equal(span_of(&s, b)->root, a.i);
    assert_int_equal(span_of(&s, c)->root, a.i);
    assert_int_equal(span_of(&s, d)->root, a.i);
    assert_int_equal(s.plan.arena_bytes, 2 * 4096);
    assert_int_equal(plan_kernels(&s.plan), 3);
    hand_close(&s);
}

static void test_outputs_and_later_uses_are_kept(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    struct graph *g = &s.graph;
    value x = vector(&s, "x", 64);
    value kept = g_exp(g, x), on = g_scale(g, kept, 2); /* kept is an output */
    value later = g_exp(g, on), sum = g_add(g, later, on);
    graph_output(g, "kept", kept);
    graph_output(g, "sum", sum);
    hand_plan(&s, NULL);
    assert_int_equal(span_of(&s, on)->root, on.i);
    assert_int_equal(span_of(&s, later)->root, later.i); /* `on` is used after `later` */
    assert_true(span_of(&s, sum)->root == later.i || span_of(&s, sum)->root == on.i);
    hand_close(&s);
}

static void test_view_keeps_its_value_alive(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    struct graph *g = &s.graph;
    value x = vector(&s, "x", 64), a = g_exp(g, x);
    value view = g_reshape(g, a, type_2d(DT_F32, 8, 8));
    value b = g_scale(g, a, 3); /* the last use of `a` itself, but not of its bytes */
    graph_output(g, "b", b);
    graph_output(g, "c", g_exp(g, view));
    hand_plan(&s, NULL);
    assert_int_equal(span_of(&s, view)->root, a.i);
    assert_int_equal(span_of(&s, b)->root, b.i);
    hand_close(&s);
}

static void test_second_input_is_reused(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    struct graph *g = &s.graph;
    value x = vector(&s, "x", 64), a = g_exp(g, x), b = g_scale(g, a, 2);
    value row = g_exp(g, g_sum_row(g, a)); /* (1): too small to hold the sum */
    value sum = g_add(g, a, b), square = g_mul(g, sum, sum), low = g_sub(g, square, row);
    graph_output(g, "a", a);
    graph_output(g, "low", low);
    hand_plan(&s, NULL);
    assert_int_equal(span_of(&s, sum)->root, b.i);
    /* both of its inputs are the same value */
    assert_int_equal(span_of(&s, square)->root, square.i);
    assert_int_equal(span_of(&s, low)->root, square.i);
    hand_close(&s);
}

static void test_store_is_made_in_place(void **state)
{
    (void)state;
    for (int reuse = 0; reuse < 2; reuse++) {
        struct hand s;
        hand_init(&s);
        value x = vector(&s, "x", 64), w = weights(&s, "w", 64, 16);
        value y = g_exp(&s.graph, g_scale(&s.graph, x, 2));
        g_store(&s.graph, w, y);
        hand_plan(&s, reuse ? NULL : &NO_REUSE);
        assert_int_equal(plan_kernels(&s.plan), reuse ? 2 : 3);
        assert_int_equal(span_of(&s, y)->storage, reuse ? STORAGE_WEIGHTS : STORAGE_ARENA);
        if (reuse) assert_int_equal(span_of(&s, y)->offset, 64);
        hand_fill(hand_input(&s, "x"), 64, 1);
        float first = *(float *)hand_input(&s, "x");
        hand_run(&s);
        assert_float_equal(*hand_leaf(&s, STORAGE_WEIGHTS, "w"), expf(2 * first), 1e-6);
        hand_close(&s);
    }
}

/* w is read after its new value is computed, so this value must not be computed in place. */
static void test_store_waits_for_readers(void **state)
{
    (void)state;
    for (int through_view = 0; through_view < 2; through_view++) {
        struct hand s;
        hand_init(&s);
        struct graph *g = &s.graph;
        value x = vector(&s, "x", 64), w = weights(&s, "w", 64, 0);
        value old = through_view ? g_reshape(g, w, type_2d(DT_F32, 8, 8)) : w;
        value y = g_exp(g, x);
        value doubled = g_scale(g, old, 2);
        g_store(g, w, y);
        graph_output(g, "doubled", doubled);
        hand_plan(&s, NULL);
        hand_fill(hand_input(&s, "x"), 64, 1);
        float *at = hand_leaf(&s, STORAGE_WEIGHTS, "w");
        for (int i = 0; i < 64; i++) at[i] = 10;
        hand_run(&s);
        assert_float_equal(hand_output(&s, "doubled")[5], 20, 0);
        assert_true(at[5] < 3);
        hand_close(&s);
    }
}

/* A stored value that is also an output or is stored twice needs a copy. */
static void test_store_of_a_live_value(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    struct graph *g = &s.graph;
    value x = vector(&s, "x", 64), y = g_exp(g, x), z = g_scale(g, x, 2);
    g_store(g, weights(&s, "a", 64, 0), y);
    g_store(g, weights(&s, "b", 64, 64), y);
    g_store(g, weights(&s, "c", 64, 128), z);
    g_store(g, weights(&s, "d", 64, 192), x);
    graph_output(g, "z", z);
    hand_plan(&s, &POISON);
    hand_fill(hand_input(&s, "x"), 64, 1);
    float x0 = *(float *)hand_input(&s, "x");
    hand_run(&s);
    assert_float_equal(*hand_leaf(&s, STORAGE_WEIGHTS, "a"), expf(x0), 1e-6);
    assert_float_equal(*hand_leaf(&s, STORAGE_WEIGHTS, "b"), expf(x0), 1e-6);
    assert_float_equal(*hand_leaf(&s, STORAGE_WEIGHTS, "c"), 2 * x0, 0);
    assert_float_equal(*hand_leaf(&s, STORAGE_WEIGHTS, "d"), x0, 0);
    assert_float_equal(*hand_output(&s, "z"), 2 * x0, 0);
    hand_close(&s);
}

/* A random graph with two inputs: many values have several uses, some are outputs or are stored.
 * Depends only on `round`. */
static void random_graph(struct hand *s, uint32_t round, char names[][16], int *ret_outputs)
{
    enum { NODES = 40, SIZE = 24 };
    struct graph *g = &s->graph;
    value made[NODES + 3];
    uint64_t at = 0;
#define DRAW(n) ((int)rng_below(3, RNG_TEST, round, at++, (n)))
    made[0] = vector(s, "x", SIZE);
    made[1] = vector(s, "y", SIZE);
    made[2] = weights(s, "w", SIZE, 0);
    int count = 3, outputs = 0, offset = 32;
    while (count < NODES + 3) {
        value a = made[DRAW(3) ? count - 1 - DRAW(count < 6 ? count : 6) : DRAW(count)];
        value b = made[DRAW(count)], v;
        switch (DRAW(7)) {
        case 0:
            v = g_add(g, a, g_reshape(g, b, *graph_type(g, a)));
            break;
        case 1:
            v = g_mul(g, g_tanh(g, g_reshape(g, b, *graph_type(g, a))), a);
            break;
        case 2:
            v = g_exp(g, g_scale(g, g_tanh(g, a), -2));
            break;
        case 3:
            v = g_scale(g, a, 0.5);
            break;
        case 4:
            v = g_reshape(g, a, type_2d(DT_F32, 4, SIZE / 4));
            break;
        case 5:
            v = g_sub(g, a, g_scale(g, g_sum_row(g, a), 0.1));
            break;
        default:
            v = g_tanh(g, a);
            break;
        }
        made[count++] = v;
        if (!DRAW(8)) {
            graph_output(g, names[outputs], v);
            outputs++;
        }
        if (!DRAW(10)) {
            value leaf = weights(s, arena_printf(&s->arena, "s%d", count), SIZE, offset);
            g_store(g, leaf, g_reshape(g, v, type_1d(DT_F32, SIZE)));
            offset += 32;
        }
    }
    if (!DRAW(3)) g_store(g, made[2], g_reshape(g, made[count - 1], type_1d(DT_F32, SIZE)));
    graph_output(g, names[outputs++], made[count - 1]);
    *ret_outputs = outputs;
#undef DRAW
}

struct result {
    float value[64][24], weights[2048];
    int64_t arena_bytes;
};

static void run_random(uint32_t round, const struct plan_options *o, struct result *r,
                       int *ret_outputs)
{
    char names[64][16];
    struct hand s;
    for (int i = 0; i < 64; i++) snprintf(names[i], sizeof names[i], "out%d", i);
    hand_init(&s);
    random_graph(&s, round, names, ret_outputs);
    hand_plan(&s, o);
    memset(r, 0, sizeof *r);
    for (int again = 0; again < 2; again++) { /* the second run must give the same results */
        hand_fill(hand_leaf(&s, STORAGE_WEIGHTS, "w"), 24, 3);
        hand_fill(hand_input(&s, "x"), 24, 1);
        hand_fill(hand_input(&s, "y"), 24, 2);
        hand_run(&s);
    }
    for (int i = 0; i < *ret_outputs; i++)
        memcpy(r->value[i], hand_output(&s, names[i]), sizeof r->value[i]);
    int64_t bytes = s.storage.bytes[STORAGE_WEIGHTS];
    assert_true(bytes <= (int64_t)sizeof r->weights);
    memcpy(r->weights, s.storage.base[STORAGE_WEIGHTS], (size_t)bytes);
    r->arena_bytes = s.plan.arena_bytes;
    hand_close(&s);
}

static void test_random_graphs_do_not_depend_on_placement(void **state)
{
    (void)state;
    static struct result plain, planned, poisoned;
    int64_t saved = 0;
    for (uint32_t round = 0; round < 400; round++) {
        int outputs;
        run_random(round, &NO_REUSE, &plain, &outputs);
        run_random(round, NULL, &planned, &outputs);
        run_random(round, &POISON, &poisoned, &outputs);
        saved += plain.arena_bytes - planned.arena_bytes;
        for (int i = 0; i < outputs; i++) {
            for (int k = 0; k < 24; k++) assert_true(isfinite(plain.value[i][k]));
            if (memcmp(plain.value[i], planned.value[i], sizeof plain.value[i]) ||
                memcmp(plain.value[i], poisoned.value[i], sizeof plain.value[i]))
                fail_msg("round %u: output %d depends on placement", round, i);
        }
        if (memcmp(plain.weights, planned.weights, sizeof plain.weights) ||
            memcmp(plain.weights, poisoned.weights, sizeof plain.weights))
            fail_msg("round %u: state depends on placement", round);
    }
    assert_true(saved > 400 * 1000);
}

static struct kernel fussy;

static int prepared, released;

static enum status prepare(const struct kernel *k, struct kernel_call *call)
{
    assert_true(k->run && k->prepare == prepare);
    if (type_elements(&call->out_type[0]) == 32) return (fail)(ST_DEVICE, "no memory");
    call->state = &prepared;
    prepared++;
    return ST_OK;
}

static void release(struct kernel_call *call)
{
    assert_ptr_equal(call->state, &prepared);
    released++;
}

static const struct kernel *fussy_kernel(int op, const struct kernel_call *call, int n)
{
    const struct kernel *k = backend_find("cpu")->kernels.find(op, call, n);
    if (!k) return NULL;
    fussy = *k;
    fussy.prepare = prepare;
    fussy.release = release;
    return &fussy;
}

static const struct kernel *no_exp(int op, const struct kernel_call *call, int n)
{
    return op == OP_EXP ? NULL : fussy_kernel(op, call, n);
}

static void test_missing_kernel_is_named(void **state)
{
    (void)state;
    struct hand s;
    struct backend lame = *backend_find("cpu");
    lame.name = "lame";
    lame.kernels.find = no_exp;
    hand_init(&s);
    graph_enter(&s.graph, "h.1.mlp", 1);
    g_exp(&s.graph, g_scale(&s.graph, vector(&s, "x", 64), 2));
    const struct target target = {.backend = &lame};
    enum status st = plan_build(&s.plan, &s.graph, &target, NULL, &s.arena);
    assert_int_equal(st, ST_UNSUPPORTED);
    assert_string_equal(fail_message(), "backend lame has no kernel for EXP on f32 (64) (h.1.mlp)");
    released = 0;
    plan_release(&s.plan); /* no effect: nothing was prepared */
    assert_int_equal(released, 0);
    arena_release(&s.arena);
}

struct log {
    int order[64], count, fail_at;
};

static void before(void *user, const struct plan *p, int step)
{
    struct log *l = user;
    assert_non_null(p->step[step].kernel);
    l->order[l->count++] = step;
}

static enum status after(void *user, const struct plan *p, int step)
{
    struct log *l = user;
    (void)p;
    l->order[l->count++] = 1000 + step;
    return step == l->fail_at ? (fail)(ST_NUMERIC, "a NaN") : ST_OK;
}

static void test_hooks_in_order(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    struct graph *g = &s.graph;
    graph_enter(g, "here", -1);
    value x = vector(&s, "x", 64), a = g_exp(g, x);                  /* nodes 0, 1 */
    value b = g_scale(g, g_reshape(g, a, type_2d(DT_F32, 8, 8)), 2); /* 2, 3 */
    graph_output(g, "c", g_exp(g, b));                               /* 4 */
    hand_plan(&s, NULL);
    struct log l = {.fail_at = -1};
    struct plan_hooks hooks = {.user = &l, .before = before, .after = after};
    hand_ok(plan_run(&s.plan, &hooks));
    const int expected[] = {1, 1001, 3, 1003, 4, 1004};
    assert_int_equal(l.count, 6);
    assert_memory_equal(l.order, expected, sizeof expected);
    l = (struct log){.fail_at = 3};
    assert_int_equal(plan_run(&s.plan, &hooks), ST_NUMERIC);
    assert_string_equal(fail_message(), "node 3 SCALE here f32 (8,8) -> f32 (8,8): a NaN");
    assert_int_equal(l.count, 4); /* no further calls */
    hand_close(&s);
}

static void test_variant_is_preferred(void **state)
{
    (void)state;
    struct hand s;
    hand_init(&s);
    graph_output(&s.graph, "y", g_exp(&s.graph, vector(&s, "x", 64)));
    hand_plan(&s, &(struct plan_options){.variant = "ref"});
    assert_string_equal(s.plan.step[1].kernel->variant, "ref");
    hand_close(&s);
    hand_init(&s);
    graph_output(&s.graph, "y", g_exp(&s.graph, vector(&s, "x", 64)));
    /* the best kernel is chosen instead */
    hand_plan(&s, &(struct plan_options){.variant = "no such variant"});
    assert_non_null(s.plan.step[1].kernel);
    hand_close(&s);
}

/* Two plans share weights; the arena is as large as the larger plan needs. */
static void test_storage_is_shared(void **state)
{
    (void)state;
    struct hand s;
    struct graph other;
    struct plan second;
    hand_init(&s);
    graph_init(&other, &s.arena);
    graph_output(&s.graph, "y", g_exp(&s.graph, weights(&s, "w", 64, 0)));
    value w = g_leaf(&other, STORAGE_WEIGHTS, "w", type_1d(DT_F32, 64), 0);
    graph_output(&other, "y", g_scale(&other, w, 3));
    const struct target target = {.backend = s.backend};
    hand_ok(plan_build(&s.plan, &s.graph, &target, NULL, &s.arena));
    hand_ok(plan_build(&second, &other, &target, NULL, &s.arena));
    s.storage = (struct storage_blocks){.backend = s.backend};
    storage_reserve(&s.storage, &s.plan);
    storage_reserve(&s.storage, &second);
    assert_int_equal(s.storage.bytes[STORAGE_WEIGHTS], 256);
    assert_int_equal(s.storage.bytes[STORAGE_ARENA], 256);
    hand_ok(storage_alloc(&s.storage));
    hand_ok(plan_bind(&s.plan, &s.storage));
    hand_ok(plan_bind(&second, &s.storage));
    assert_ptr_equal(plan_address(&second, w), hand_leaf(&s, STORAGE_WEIGHTS, "w"));
    plan_release(&second);
    plan_release(&s.plan);
    storage_free(&s.storage);
    arena_release(&s.arena);
}

static void test_failed_prepare_releases_what_was_prepared(void **state)
{
    (void)state;
    struct hand s;
    struct backend b = *backend_find("cpu");
    b.kernels.find = fussy_kernel;
    hand_init(&s);
    struct graph *g = &s.graph;
    value a = g_exp(g, g_exp(g, vector(&s, "x", 64)));
    g_exp(g, vector(&s, "y", 32));
    g_exp(g, a);
    prepared = released = 0;
    const struct target target = {.backend = &b};
    s.storage = (struct storage_blocks){.backend = &b};
    hand_ok(plan_build(&s.plan, g, &target, NULL, &s.arena));
    assert_int_equal(prepared, 0);
    storage_reserve(&s.storage, &s.plan);
    hand_ok(storage_alloc(&s.storage));
    assert_int_equal(plan_bind(&s.plan, &s.storage), ST_DEVICE);
    assert_non_null(strstr(fail_message(), "node 4 EXP"));
    assert_int_equal(prepared, 2);
    assert_int_equal(released, 2);
    plan_release(&s.plan);
    assert_int_equal(released, 2);
    storage_free(&s.storage);
    arena_release(&s.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_runs_in_place),
        cmocka_unit_test(test_outputs_and_later_uses_are_kept),
        cmocka_unit_test(test_view_keeps_its_value_alive),
        cmocka_unit_test(test_second_input_is_reused),
        cmocka_unit_test(test_store_is_made_in_place),
        cmocka_unit_test(test_store_waits_for_readers),
        cmocka_unit_test(test_store_of_a_live_value),
        cmocka_unit_test(test_random_graphs_do_not_depend_on_placement),
        cmocka_unit_test(test_missing_kernel_is_named),
        cmocka_unit_test(test_hooks_in_order),
        cmocka_unit_test(test_variant_is_preferred),
        cmocka_unit_test(test_storage_is_shared),
        cmocka_unit_test(test_failed_prepare_releases_what_was_prepared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
