/* Properties of differentiation: a missing gradient rule is an error and never a zero, and the
 * adjoints of all uses of a value are summed. test_ops.c compares every rule with finite
 * differences. */
#include "../support/hand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { N = 6 };

static struct hand s;

static int fresh(void **state)
{
    (void)state;
    hand_init(&s);
    return 0;
}

static int done(void **state)
{
    (void)state;
    hand_close(&s);
    return 0;
}

static value vector(const char *name)
{
    return g_input(&s.graph, name, type_1d(DT_F32, N));
}

static value sum(value x)
{
    return g_reshape(&s.graph, g_sum_row(&s.graph, x), type_scalar(DT_F32));
}

static enum status differentiate(value loss, int n, const value *wrt, value *ret)
{
    value one = g_fill(&s.graph, type_scalar(DT_F32), 1);
    return graph_differentiate(&s.graph, loss, one, n, wrt, ret);
}

static void refuses(enum status st, enum status as, const char *words)
{
    assert_int_equal(st, as);
    if (!strstr(fail_message(), words)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), words);
}

static void test_missing_rule_names_the_operator(void **state)
{
    (void)state;
    value x = vector("x"), d;
    graph_enter(&s.graph, "clip", -1);
    value loss = sum(g_at_most(&s.graph, x, 1));
    refuses(differentiate(loss, 1, &x, &d), ST_UNSUPPORTED, "AT_MOST clip has no gradient");
}

/* The same operator is accepted if no gradient flows through it. */
static void test_missing_rule_off_the_path(void **state)
{
    (void)state;
    value x = vector("x"), y = vector("y"), d;
    value loss = sum(g_mul(&s.graph, x, g_at_most(&s.graph, y, 1)));
    hand_ok(differentiate(loss, 1, &x, &d));
}

static void test_stopped_gradient_is_an_error_not_zero(void **state)
{
    (void)state;
    value x = vector("x"), y = vector("y"), d[2];
    value loss = sum(g_mul(&s.graph, y, g_detach(&s.graph, x)));
    value wrt[] = {y, x};
    refuses(differentiate(loss, 2, wrt, d), ST_USAGE, "the loss does not depend on x");
}

static void test_unreachable_is_an_error(void **state)
{
    (void)state;
    value x = vector("x"), other = vector("other"), d[2];
    value loss = sum(g_exp(&s.graph, x));
    g_exp(&s.graph, other);
    value wrt[] = {x, other};
    refuses(differentiate(loss, 2, wrt, d), ST_USAGE, "the loss does not depend on other");
}

static void test_integers_get_none(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    value table = g_input(g, "table", type_2d(DT_F32, 5, 3)), d[2];
    value ids = g_input(g, "ids", type_1d(DT_I32, 4));
    value x = g_embed(g, table, ids);
    value loss = g_scale(g, sum(g_reshape(g, x, type_1d(DT_F32, 12))), 2);
    value wrt[] = {table, ids};
    refuses(differentiate(loss, 2, wrt, d), ST_USAGE, "the loss does not depend on ids");
}

/* The rule would ignore the adjoint of the second output, so differentiation fails. */
static void test_adjoint_of_a_later_output_is_not_dropped(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    value logits = g_input(g, "logits", type_2d(DT_F32, 4, 5)), d;
    value targets = g_input(g, "targets", type_1d(DT_I32, 4));
    value loss = g_cross_entropy(g, logits, targets, 5);
    value lse = graph_out(loss, 1);
    value total = g_add(g, loss, sum(g_mul(g, lse, lse))); /* loss + z-loss */
    refuses(differentiate(total, 1, &logits, &d), ST_UNSUPPORTED, "CROSS_ENTROPY");
}

static void test_a_later_output_alone(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    value x = g_input(g, "x", type_2d(DT_F32, 4, 5)), w = g_input(g, "w", type_1d(DT_F32, 5)), d;
    value mean = graph_out(g_layernorm(g, x, w, (value){0}, 1e-5), 1);
    value loss = sum(g_reshape(g, mean, type_1d(DT_F32, 4)));
    refuses(differentiate(loss, 1, &x, &d), ST_UNSUPPORTED, "only the first output");
}

/* Only the last of three parts is used; the gradients of the other parts are explicit zeros. */
static void test_one_of_several_equal_outputs(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    value x = g_input(g, "x", type_3d(DT_F32, 1, 2, 6)), d;
    value v = graph_out(g_split_heads(g, x, 1, 0, 3), 2); /* (1,1,2,2) */
    value loss = sum(g_reshape(g, v, type_1d(DT_F32, 4)));
    hand_ok(differentiate(loss, 1, &x, &d));
    graph_output(g, "d", d);
    hand_plan(&s, NULL);
    hand_run(&s);
    const float *dx = hand_output(&s, "d");
    for (int i = 0; i < 12; i++) assert_true(dx[i] == (i % 6 >= 4 ? 1 : 0));
}

/* loss = sum(x x + exp(x) + 3 x) uses x four times. */
static void test_uses_add_up(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    value x = vector("x"), d;
    value y = g_add(g, g_mul(g, x, x), g_add(g, g_exp(g, x), g_scale(g, x, 3)));
    hand_ok(differentiate(sum(y), 1, &x, &d));
    graph_output(g, "d", d);
    graph_output(g, "x", x);
    hand_plan(&s, NULL);
    hand_fill(hand_input(&s, "x"), N, 1);
    hand_run(&s);
    const float *at = hand_output(&s, "x"), *dx = hand_output(&s, "d");
    for (int i = 0; i < N; i++) assert_float_equal(dx[i], 2 * at[i] + expf(at[i]) + 3, 1e-5);
}

/* A table that is both the embedding and the output head: its gradient is the sum of two known
 * gradients. */
static void test_tied_table(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    enum { V = 4, C = 3, T = 2 };
    value table = g_input(g, "table", type_2d(DT_F32, V, C)), d;
    value ids = g_input(g, "ids", type_1d(DT_I32, T));
    value x = g_embed(g, table, ids);             /* (T,C) */
    value y = g_matmul(g, x, table, false, true); /* (T,V) */
    value loss = sum(g_reshape(g, y, type_1d(DT_F32, T * V)));
    hand_ok(differentiate(loss, 1, &table, &d));
    graph_output(g, "d", d);
    graph_output(g, "table", table);
    hand_plan(&s, NULL);
    hand_fill(hand_input(&s, "table"), V * C, 1);
    int32_t *id = hand_input(&s, "ids");
    id[0] = 2, id[1] = 2;
    hand_run(&s);
    const float *w = hand_output(&s, "table"), *dw = hand_output(&s, "d");
    for (int v = 0; v < V; v++)
        for (int c = 0; c < C; c++) {
            float all = w[c] + w[C + c] + w[2 * C + c] + w[3 * C + c];
            float expected = 2 * w[2 * C + c] + (v == 2 ? 2 * all : 0);
            assert_float_equal(dw[v * C + c], expected, 1e-5);
        }
}

static void test_loss_itself(void **state)
{
    (void)state;
    value x = g_input(&s.graph, "x", type_scalar(DT_F32)), d;
    value one = g_fill(&s.graph, type_scalar(DT_F32), 1);
    hand_ok(graph_differentiate(&s.graph, x, one, 1, &x, &d));
    assert_int_equal(d.i, one.i);
}

static void test_marks(void **state)
{
    (void)state;
    struct graph *g = &s.graph;
    value x = vector("x"), d;
    struct graph_scope top = graph_enter(g, "h.5", 5);
    value y = g_exp(g, x);
    graph_leave(g, top);
    value loss = sum(y);
    hand_ok(differentiate(loss, 1, &x, &d));
    const struct node *n = graph_producer(g, d); /* d exp: MUL */
    assert_int_equal(n->op, OP_MUL);
    assert_int_equal(n->phase, PHASE_BACKWARD);
    assert_int_equal(n->layer, 5);
    assert_string_equal(n->scope, "h.5");
    assert_int_equal(g->phase, PHASE_FORWARD); /* restored */
    assert_string_equal(g->scope, "");
    assert_int_equal(g->layer, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_missing_rule_names_the_operator),
        TEST(test_missing_rule_off_the_path),
        TEST(test_stopped_gradient_is_an_error_not_zero),
        TEST(test_unreachable_is_an_error),
        TEST(test_integers_get_none),
        TEST(test_adjoint_of_a_later_output_is_not_dropped),
        TEST(test_a_later_output_alone),
        TEST(test_one_of_several_equal_outputs),
        TEST(test_uses_add_up),
        TEST(test_tied_table),
        TEST(test_loss_itself),
        TEST(test_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
