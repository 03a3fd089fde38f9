/* Checks kernels, gradients and expansions on every case of check/cases.c, with one cmocka test per
 * operator; and checks which cases the list must contain.
 * test: shards=4 */
#include "../support/cases.h"
#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/str.h"
#include "check/cases.h"
#include "check/check.h"
#include "check/check_rules.h"
#include "graph/attr.h"
#include "graph/build.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool moves_no_bytes(enum op op)
{
    return op == OP_LEAF || op_def(op)->flags & OP_VIEW;
}

/* Collectives need other ranks: tests/backend/test_communicator.c. */
static bool needs_ranks(enum op op)
{
    return op_def(op)->family == FAMILY_COMMUNICATION;
}

/* Only matmuls know the layout that PACK writes, so PACK is checked in the cases of matmuls. */
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
    static const char *const modes[CHECK_WAYS] = {"apart", "in place of 0", "in place of 1"};
    struct tally *t = user;
    t->rows++;
    if (strcmp(r->kernel->variant, "ref") == 0) t->reference[r->c->op][r->dtype] = true;
    if (!r->problem) return;
    t->problems++;
    print_error("%s, %s: %s %s %s %s: error %.2e, allowed %.0e\n", op_def(r->c->op)->name,
                r->c->what, r->kernel->variant, dtype_name(r->dtype), modes[r->way], r->problem,
                r->error, r->tolerance);
}

/* The operator that cmocka passes to a test. */
static enum op op_of(void **state)
{
    return (enum op)(intptr_t)*state;
}

static void test_kernels_are_near_the_reference(void **state)
{
    enum op op = op_of(state);
    const struct backend *cpu = backend_find("cpu");
    const struct target target = {.backend = cpu};
    void *context;
    struct tally t = {0};
    assert_int_equal(cpu->open(0, &context), ST_OK);
    /* With sanitizers, rows whose source also makes a variant for wider vectors run only on small
     * cases. */
    const char *small = SANITIZED ? "ref,plain,sse2,blocked_plain,blocked_sse2" : NULL;
    enum status st =
        check_kernels(&target, context, &(struct check_scope){op, NULL, small}, note, &t);
    if (st != ST_OK) fail_msg("%s", fail_message());
    cpu->close(context);
    assert_int_equal(t.problems, 0);
    if (!moves_no_bytes(op) && !needs_ranks(op) &&
        (!t.reference[op][DT_F32] || !t.reference[op][DT_F64]))
        fail_msg("%s has no CPU reference kernel that was tried", op_def(op)->name);
}

/* Calls `check` with every case of the operator; each error must be at most `most`. */
static void check_cases(enum op op, enum status (*check)(int i, double *ret_error), double most)
{
    const struct op_case *c;
    int failures = 0;
    for (int i = 0; (c = case_at(i)); i++) {
        double error = INFINITY;
        if (c->op != op || (check == check_gradient && c->no_differences)) continue;
        if (check(i, &error) != ST_OK)
            print_error("%s, %s: %s\n", op_def(op)->name, c->what, fail_message()), failures++;
        else if (!(error <= most))
            print_error("%s, %s: off by %.2e\n", op_def(op)->name, c->what, error), failures++;
    }
    assert_int_equal(failures, 0);
}

static void test_gradients_are_slopes(void **state)
{
    check_cases(op_of(state), check_gradient, gradient_tolerance);
}

static void test_expansions_mean_the_same(void **state)
{
    check_cases(op_of(state), check_expansion, expansion_tolerance);
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

/* A gradient rule would never be checked if all its cases were exempt from finite differences. */
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
        if (has_own_layout((enum op)op) || needs_ranks((enum op)op)) continue;
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

/* True for fused operators that compute less than their parts: logits are normalized once, GELU and
 * its slope share an exponential, masked elements are not computed. */
static bool saves_arithmetic(const struct op_case *c)
{
    return c->op == OP_CROSS_ENTROPY_BOTH || c->op == OP_GELU_BOTH ||
           ((c->op == OP_SCORE_SOFTMAX || c->op == OP_SCORE_SOFTMAX_GRAD) && c->attr.score.causal);
}

/* Other fused operators have the FLOPs of their parts. */
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

/* An attribute that is not in its operator's schema would be neither printed nor compared. */
static void test_schemas_name_every_attribute(void **state)
{
    (void)state;
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        union attr rest = c->attr;
        for (const struct attr_field *f = op_def(c->op)->attrs; f->name; f++)
            memset((char *)&rest + f->offset, 0, attr_size(f->kind));
        for (size_t b = 0; b < sizeof rest; b++)
            if (((const char *)&rest)[b])
                fail_msg("%s, %s: byte %zu of its attributes is in no field of its schema",
                         op_def(c->op)->name, c->what, b);
    }
}

/* Two cases of an operator print the same text if and only if their attributes are equal. */
static void test_printed_attributes_tell_cases_apart(void **state)
{
    (void)state;
    const struct op_case *c, *d;
    struct str x = {0}, y = {0};
    int equal = 0, different = 0;
    for (int i = 0; (c = case_at(i)); i++)
        for (int k = 0; (d = case_at(k)); k++) {
            if (c->op != d->op || c->op == OP_CHAIN) continue;
            bool same = attr_same(c->op, &c->attr, &d->attr, true) &&
                        numerics_same(&c->numerics, &d->numerics);
            str_release(&x), str_release(&y);
            attr_print(c->op, &c->attr, &c->numerics, &x);
            attr_print(d->op, &d->attr, &d->numerics, &y);
            if (same != !strcmp(str_text(&x), str_text(&y)))
                fail_msg("%s: \"%s\" and \"%s\" print%s and%s", op_def(c->op)->name, c->what,
                         d->what, str_text(&x), str_text(&y));
            equal += same, different += !same;
        }
    assert_true(equal > 100 && different > 100);
    str_release(&x), str_release(&y);
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

/* Adds a test with the name "WHAT OPERATOR". */
static void add_test(struct CMUnitTest *tests, int *n, const char *what,
                     CMUnitTestFunction function, int op)
{
    static struct arena names;
    tests[(*n)++] = (struct CMUnitTest){
        .name = arena_printf(&names, "%s %s", what, op_def((enum op)op)->name),
        .test_func = function,
        .initial_state = (void *)(intptr_t)op,
    };
}

int main(void)
{
    const struct CMUnitTest whole[] = {
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_every_operator_has_a_case),
        cmocka_unit_test(test_schemas_name_every_attribute),
        cmocka_unit_test(test_printed_attributes_tell_cases_apart),
        cmocka_unit_test(test_costs_are_positive),
        cmocka_unit_test(test_fused_flops_are_those_of_the_parts),
        cmocka_unit_test(test_no_gradient_flows_through_detach),
    };
    static struct CMUnitTest tests[COUNT_OF(whole) + 3 * OP_COUNT];
    int n = 0;
    if (shard_has(0))
        for (int i = 0; i < COUNT_OF(whole); i++) tests[n++] = whole[i];
    for (int op = 0; op < OP_COUNT; op++) {
        if (!shard_has(op) || has_own_layout((enum op)op) || needs_ranks((enum op)op)) continue;
        if (op != OP_LEAF) add_test(tests, &n, "kernels", test_kernels_are_near_the_reference, op);
        if (SANITIZED) continue; /* the other tests run only reference kernels, checked above */
        if (op_def((enum op)op)->expand)
            add_test(tests, &n, "expansion", test_expansions_mean_the_same, op);
        if (op_def((enum op)op)->grad && op != OP_DETACH)
            add_test(tests, &n, "gradient", test_gradients_are_slopes, op);
    }
    return _cmocka_run_group_tests("operators", tests, (size_t)n, NULL, NULL);
}
