/* What is done with each row of the list of operator cases, and what the list may not leave out. */
#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "graph/build.h"
#include "measure/cases.h"
#include "measure/check.h"
#include "measure/check_rules.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool moves_no_bytes(enum op op)
{
    return op == OP_LEAF || op_def(op)->flags & OP_VIEW;
}

/* What PACK makes is known to the product that takes it alone: it is tried with the cases of products. */
static bool has_own_layout(enum op op)
{
    return op == OP_PACK;
}

struct tally {
    int rows, problems;
    bool reference[OP_COUNT][DT_COUNT];
};

static void note(void *user, const struct check_result *r)
{
    static const char *const ways[CHECK_WAYS] = {"apart", "in place of 0", "in place of 1"};
    struct tally *t = user;
    t->rows++;
    if (strcmp(r->kernel->variant, "ref") == 0) t->reference[r->c->op][r->dtype] = true;
    if (!r->problem) return;
    t->problems++;
    print_error("%s, %s: %s %s %s %s: error %.2e, allowed %.0e\n", op_def(r->c->op)->name,
                r->c->what, r->kernel->variant, dtype_name(r->dtype), ways[r->way], r->problem,
                r->error, r->tolerance);
}

static void test_kernels_are_near_the_reference(void **state)
{
    (void)state;
    const struct backend *cpu = backend_find("cpu");
    const struct target target = {.backend = cpu};
    void *context;
    struct tally t = {0};
    assert_int_equal(cpu->open(0, &context), ST_OK);
    enum status st = check_kernels(&target, context, OP_COUNT, NULL, note, &t);
    if (st != ST_OK) fail_msg("%s", fail_message());
    cpu->close(context);
    assert_int_equal(t.problems, 0);
    for (int op = 0; op < OP_COUNT; op++) {
        if (moves_no_bytes((enum op)op) || has_own_layout((enum op)op)) continue;
        if (!t.reference[op][DT_F32] || !t.reference[op][DT_F64])
            fail_msg("%s has no CPU reference kernel that was tried", op_def((enum op)op)->name);
    }
}

static void test_gradients_are_slopes(void **state)
{
    (void)state;
    const struct op_case *c;
    int failures = 0;
    for (int i = 0; (c = case_at(i)); i++) {
        double error = INFINITY;
        if (!op_def(c->op)->grad || c->no_differences || c->op == OP_DETACH) continue;
        if (check_gradient(i, &error) != ST_OK)
            print_error("%s, %s: %s\n", op_def(c->op)->name, c->what, fail_message()), failures++;
        else if (error > gradient_tolerance)
            print_error("%s, %s: gradient off by %.2e\n", op_def(c->op)->name, c->what, error),
                failures++;
    }
    assert_int_equal(failures, 0);
}

static void test_no_gradient_flows_through_detach(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct graph g;
    value gradient;
    graph_init(&g, &arena);
    value x = g_input(&g, "x", type_1d(DT_F64, 3));
    value loss = g_sum_row(&g, g_detach(&g, x)), one = g_fill(&g, type_scalar(DT_F64), 1);
    assert_int_equal(graph_differentiate(&g, loss, one, 1, &x, &gradient), ST_USAGE);
    arena_release(&arena);
}

static void test_expansions_mean_the_same(void **state)
{
    (void)state;
    const struct op_case *c;
    int failures = 0;
    for (int i = 0; (c = case_at(i)); i++) {
        double error = INFINITY;
        if (!op_def(c->op)->expand) continue;
        if (check_expansion(i, &error) != ST_OK)
            print_error("%s, %s: %s\n", op_def(c->op)->name, c->what, fail_message()), failures++;
        else if (error > expansion_tolerance)
            print_error("%s, %s: expansion off by %.2e\n", op_def(c->op)->name, c->what, error),
                failures++;
    }
    assert_int_equal(failures, 0);
}

/* A gradient rule whose every case is excused would never be tried. */
static void test_every_operator_has_a_case(void **state)
{
    (void)state;
    bool seen[OP_COUNT] = {false}, differentiated[OP_COUNT] = {false};
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        seen[c->op] = true;
        if (!c->no_differences) differentiated[c->op] = true;
    }
    for (int op = 0; op < OP_COUNT; op++) {
        if (has_own_layout((enum op)op)) continue;
        if (!seen[op] && op != OP_LEAF) fail_msg("%s has no case", op_def((enum op)op)->name);
        if (op_def((enum op)op)->grad && !differentiated[op])
            fail_msg("the gradient of %s is never tried", op_def((enum op)op)->name);
    }
}

static void test_costs_are_positive(void **state)
{
    (void)state;
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        struct node node;
        struct type in[MAX_IN], out[MAX_OUT];
        assert_int_equal(case_node(c, DT_F32, &node, in, out), ST_OK);
        struct cost cost = op_def(c->op)->cost(&node, in, out);
        bool free = op_def(c->op)->cost == op_def(OP_LEAF)->cost;
        if (!isfinite(cost.flops) || !isfinite(cost.bytes) || cost.flops < 0)
            fail_msg("%s, %s: no cost", op_def(c->op)->name, c->what);
        if (free != (cost.bytes <= 0) || free != moves_no_bytes(c->op))
            fail_msg("%s, %s: %g bytes", op_def(c->op)->name, c->what, cost.bytes);
    }
}

/* Of one step of two parts: logits are normalised once, and GELU and its slope share an exponential. Behind a mask nothing is
 * computed. */
static bool saves_arithmetic(const struct op_case *c)
{
    return c->op == OP_CROSS_ENTROPY_BOTH || c->op == OP_GELU_BOTH ||
           ((c->op == OP_SCORE_SOFTMAX || c->op == OP_SCORE_SOFTMAX_GRAD) && c->attr.score.causal);
}

/* Fusing takes no arithmetic away: an operator counts what its parts do. */
static void test_fused_flops_are_those_of_the_parts(void **state)
{
    (void)state;
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        struct arena arena = {0};
        struct node node;
        struct type in[MAX_IN], out[MAX_OUT];
        const struct op_def *def = op_def(c->op);
        if ((def->level != LEVEL_FUSED && c->op != OP_LINEAR) || saves_arithmetic(c)) continue;
        assert_int_equal(case_node(c, DT_F32, &node, in, out), ST_OK);
        struct graph g;
        graph_init(&g, &arena);
        value from[MAX_IN], to[MAX_OUT];
        double parts = 0;
        for (int k = 0; k < node.n_in; k++) from[k] = g_leaf(&g, STORAGE_WEIGHTS, "x", in[k], 0);
        def->expand(&g, &node, from, to);
        assert_int_equal(graph_status(&g), ST_OK);
        for (int id = 0; id < g.nodes; id++) parts += graph_node_cost(&g, &g.node[id]).flops;
        double is = def->cost(&node, in, out).flops;
        if (is != parts) fail_msg("%s, %s: %.0f, its parts %.0f", def->name, c->what, is, parts);
        arena_release(&arena);
    }
}

static void test_distance(void **state)
{
    (void)state;
    double x[] = {3, INFINITY}, y[] = {4, INFINITY};
    assert_float_equal(check_distance(x, y, 1), 0.25, 1e-15);
    assert_float_equal(check_distance(x, y, 2), 0.25, 1e-15);
    assert_true(isinf(check_distance((double[]){NAN}, (double[]){NAN}, 1)));
    assert_true(isinf(check_distance((double[]){NAN}, (double[]){1}, 1)));
    assert_true(isinf(check_distance((double[]){1}, (double[]){NAN}, 1)));
    assert_true(isinf(check_distance((double[]){INFINITY}, (double[]){-INFINITY}, 1)));
    assert_true(isinf(check_distance((double[]){1}, (double[]){0}, 1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_every_operator_has_a_case),
        cmocka_unit_test(test_costs_are_positive),
        cmocka_unit_test(test_fused_flops_are_those_of_the_parts),
        cmocka_unit_test(test_kernels_are_near_the_reference),
        cmocka_unit_test(test_expansions_mean_the_same),
        cmocka_unit_test(test_gradients_are_slopes),
        cmocka_unit_test(test_no_gradient_flows_through_detach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
