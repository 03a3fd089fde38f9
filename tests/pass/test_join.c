/* The pass `join`: which matmuls become one, and that results do not change. */
#include "../support/hand.h"
#include "base/str.h"
#include "pass/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, T = 3, K = 16, N = 8 };

struct made {
    struct graph *g;
    value x, other; /* (B,T,K) */
};

/* x times the transpose of a weight (rows,K) at `offset`. */
static value product(const struct made *m, const char *name, value x, int64_t rows, int64_t offset)
{
    struct graph_scope here = graph_enter(m->g, name, -1);
    value w = g_leaf(m->g, STORAGE_WEIGHTS, "weight", type_2d(DT_F32, rows, K), offset);
    value y = g_matmul(m->g, x, w, false, true);
    graph_leave(m->g, here);
    return y;
}

static void three_side_by_side(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, 64), product(m, "k", m->x, 2 * N, 64 + N * K),
                 product(m, "v", m->x, N, 64 + 3 * N * K)};
    graph_output(m->g, "y", g_concat(m->g, 3, y));
}

static void gate_and_up(const struct made *m)
{
    value gate = product(m, "w1", m->x, N, 0), up = product(m, "w3", m->x, N, N * K);
    graph_output(m->g, "y", g_swiglu(m->g, gate, up));
}

static void a_gap(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, 0), product(m, "k", m->x, N, N * K + 16)};
    graph_output(m->g, "y", g_concat(m->g, 2, y));
}

static void the_other_order(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, N * K), product(m, "k", m->x, N, 0)};
    graph_output(m->g, "y", g_concat(m->g, 2, y));
}

static void two_inputs(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, 0), product(m, "k", m->other, N, N * K)};
    graph_output(m->g, "y", g_concat(m->g, 2, y));
}

static void one_is_used_again(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, 0), product(m, "k", m->x, N, N * K)};
    graph_output(m->g, "y", g_concat(m->g, 2, y));
    graph_output(m->g, "z", g_exp(m->g, y[1]));
}

static void one_is_an_output(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, 0), product(m, "k", m->x, N, N * K)};
    graph_output(m->g, "y", g_concat(m->g, 2, y));
    graph_output(m->g, "z", y[0]);
}

static void a_weight_is_used_again(const struct made *m)
{
    value gate = product(m, "w1", m->x, N, 0), up = product(m, "w3", m->x, N, N * K);
    graph_output(m->g, "y", g_swiglu(m->g, gate, up));
    value w = graph_find_leaf(m->g, STORAGE_WEIGHTS, "w3.weight");
    graph_output(m->g, "z", g_exp(m->g, w));
}

/* Weights (K,N) cannot be joined, because their columns would have to be interleaved. */
static void not_transposed(const struct made *m)
{
    value y[2];
    for (int i = 0; i < 2; i++) {
        value w = g_leaf(m->g, STORAGE_WEIGHTS, i ? "k" : "q", type_2d(DT_F32, K, K), i * K * K);
        y[i] = g_matmul(m->g, m->x, w, false, false);
    }
    graph_output(m->g, "y", g_concat(m->g, 2, y));
}

static void something_else(const struct made *m)
{
    value y[] = {product(m, "q", m->x, N, 0), g_exp(m->g, product(m, "k", m->x, N, N * K))};
    graph_output(m->g, "y", g_concat(m->g, 2, y));
}

static void make(struct hand *s, void (*build)(const struct made *m), bool joined)
{
    struct graph out;
    struct pass_options o = {.rung = RUNG_FULL};
    hand_init(s);
    struct made m = {.g = &s->graph};
    m.x = g_input(m.g, "x", type_3d(DT_F32, B, T, K));
    m.other = g_input(m.g, "other", type_3d(DT_F32, B, T, K));
    build(&m);
    if (joined) {
        hand_ok(pass_run(pass_find("join"), &s->graph, &out, &o));
        s->graph = out;
    }
}

static void run_plan(struct hand *s)
{
    hand_plan(s, &(struct plan_options){0});
    hand_fill(s->storage.base[STORAGE_WEIGHTS],
              s->storage.bytes[STORAGE_WEIGHTS] / (int64_t)sizeof(float), 1);
    hand_fill(hand_input(s, "x"), B * T * K, 2);
    hand_fill(hand_input(s, "other"), B * T * K, 3);
    hand_run(s);
}

/* Checks that `products` matmuls remain and that the results are the same. */
static void check(void (*build)(const struct made *m), int products)
{
    struct hand plain, joined;
    make(&plain, build, false);
    make(&joined, build, true);
    assert_int_equal(hand_count(&joined.graph, OP_MATMUL), products);
    assert_int_equal(hand_count(&joined.graph, OP_CONCAT),
                     products == 1 ? 0 : hand_count(&plain.graph, OP_CONCAT));
    run_plan(&plain);
    run_plan(&joined);
    for (int i = 0; i < plain.graph.outputs; i++) {
        const char *name = plain.graph.output[i].name;
        int64_t n = type_elements(graph_type(&plain.graph, plain.graph.output[i].v));
        assert_int_equal(n, type_elements(graph_type(&joined.graph, joined.graph.output[i].v)));
        assert_true(hand_distance(hand_output(&joined, name), hand_output(&plain, name), n) < 1e-6);
    }
    hand_close(&plain);
    hand_close(&joined);
}

static void test_joined(void **state)
{
    (void)state;
    check(three_side_by_side, 1);
    check(gate_and_up, 1);
}

static void test_not_joined(void **state)
{
    (void)state;
    check(a_gap, 2);
    check(the_other_order, 2);
    check(two_inputs, 2);
    check(one_is_used_again, 2);
    check(one_is_an_output, 2);
    check(a_weight_is_used_again, 2);
    check(not_transposed, 2);
    check(something_else, 2);
}

/* The joined weight starts at the offset of the first weight and has the combined name. Leaves that
 * no node reads are removed. */
static void test_the_weight(void **state)
{
    (void)state;
    struct hand s;
    make(&s, three_side_by_side, true);
    value w = graph_find_leaf(&s.graph, STORAGE_WEIGHTS, "q+k+v.weight");
    assert_true(w.i > 0);
    const struct type t = type_2d(DT_F32, 4 * N, K);
    assert_true(type_same(graph_type(&s.graph, w), &t));
    assert_int_equal(graph_producer(&s.graph, w)->attr.leaf.offset, 64);
    assert_int_equal(hand_count(&s.graph, OP_LEAF), 3);
    arena_release(&s.arena);
}

/* Below `full` each matmul is a separate kernel, as in an eager framework. */
static void test_the_rungs_below(void **state)
{
    (void)state;
    struct hand s;
    struct graph out;
    struct pass_options o = {.rung = RUNG_OP};
    make(&s, three_side_by_side, false);
    hand_ok(pass_run(pass_find("join"), &s.graph, &out, &o));
    assert_int_equal(hand_count(&out, OP_MATMUL), 3);
    arena_release(&s.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_not_joined),
        cmocka_unit_test(test_the_weight),
        cmocka_unit_test(test_the_rungs_below),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
