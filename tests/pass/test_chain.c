/* The pass `chain`: which nodes it fuses, which it must not, and that results are bitwise the
 * same. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/rng.h"
#include "graph/chain.h"
#include "pass/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 67 };

static struct arena arena;

static int fresh(void **state)
{
    (void)state;
    arena = (struct arena){0};
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct type whole(enum dtype dtype)
{
    return type_2d(dtype, ROWS, COLUMNS);
}

static value input(struct graph *g, const char *name)
{
    return g_input(g, name, whole(DT_F32));
}

static struct graph chained(const struct graph *g, enum pass_rung rung)
{
    struct pass_options o = {.rung = rung, .compute = DT_F32};
    struct graph out;
    hand_ok(pass_run(pass_find("chain"), g, &out, &o));
    return out;
}

static struct graph fused(const struct graph *g)
{
    return chained(g, RUNG_FULL);
}

static const struct node *only_chain(const struct graph *g)
{
    const struct node *found = NULL;
    for (int id = 0; id < g->nodes; id++) {
        if (g->node[id].op != OP_CHAIN) continue;
        if (found) fail_msg("more than one chain");
        found = &g->node[id];
    }
    if (!found) fail_msg("no chain");
    return found;
}

static void is_chain(const struct graph *g, int steps, int ins, int outs)
{
    const struct node *n = only_chain(g);
    if (n->attr.chain->steps != steps || n->n_in != ins || n->n_out != outs)
        fail_msg("a chain of %d steps, %d inputs, %d outputs", n->attr.chain->steps, n->n_in,
                 n->n_out);
}

/* --- chains that are found -------------------------------------------------------------------- */

static void test_a_diamond(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value t = g_add(&g, input(&g, "a"), input(&g, "b"));
    graph_output(&g, "y", g_mul(&g, g_exp(&g, t), g_tanh(&g, t)));
    struct graph f = fused(&g);
    is_chain(&f, 4, 2, 1);
    assert_int_equal(hand_count(&f, OP_EXP) + hand_count(&f, OP_MUL), 0);
    struct graph op = chained(&g, RUNG_OP);
    assert_int_equal(hand_count(&op, OP_CHAIN), 0);
    assert_int_equal(op.nodes, g.nodes);
}

static void test_constants_are_not_inputs(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value x = input(&g, "x"), one = g_fill(&g, whole(DT_F32), 1);
    /* an operator on a constant is not a step */
    value three = g_scale(&g, g_fill(&g, whole(DT_F32), 3), 2);
    graph_output(&g, "y", g_mul(&g, g_div(&g, one, g_offset(&g, x, 2)), three));
    struct graph f = fused(&g);
    is_chain(&f, 3, 2, 1);
    assert_int_equal(hand_count(&f, OP_SCALE), 1);
}

static void test_one_operator_stays(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    graph_output(&g, "y", g_sum_row(&g, g_exp(&g, input(&g, "x"))));
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 0);
    assert_int_equal(hand_count(&f, OP_EXP), 1);
}

static void test_readers_of_one_tensor(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value x = input(&g, "x"), y = input(&g, "y");
    graph_output(&g, "a", g_mul(&g, x, y));
    graph_output(&g, "b", g_exp(&g, x));
    graph_output(&g, "c", g_tanh(&g, input(&g, "z"))); /* does not read x */
    struct graph f = fused(&g);
    is_chain(&f, 2, 2, 2);
    assert_int_equal(hand_count(&f, OP_TANH), 1);
}

static void test_readers_stay_apart(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value x = input(&g, "x"), a = g_exp(&g, x);
    graph_output(&g, "sum", g_sum_row(&g, a)); /* reads a before x is read again */
    graph_output(&g, "b", g_tanh(&g, x));
    struct graph_scope other = graph_enter(&g, "other", -1);
    graph_output(&g, "c", g_sqrt(&g, x));
    graph_leave(&g, other);
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 0);
}

/* Input 0 has the shape of the chain, because output 0 may reuse its bytes. */
static void test_the_first_input(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value b = g_input(&g, "b", type_1d(DT_F32, COLUMNS)), x = input(&g, "x");
    value left = g_sub(&g, g_fill(&g, whole(DT_F32), 1), b); /* the chain reads b before x */
    graph_output(&g, "y", g_mul(&g, left, x));
    struct graph f = fused(&g);
    const struct node *n = only_chain(&f);
    assert_true(type_same(graph_type(&f, n->in[0]), graph_type(&f, n->out[0])));
}

static void test_results_used_outside(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value x = input(&g, "x"), t = g_exp(&g, x), u = g_scale(&g, t, 3), v = g_offset(&g, u, 1);
    graph_output(&g, "sum", g_sum_row(&g, u));
    graph_output(&g, "t", t);
    graph_output(&g, "v", v);
    struct graph f = fused(&g);
    is_chain(&f, 3, 1, 3);
}

/* --- nodes that must stay separate ------------------------------------------------------------ */

/* The sum reads the first node and produces an input of the last node. A chain of both nodes would
 * therefore make a cycle. */
static void test_no_cycle(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value x = input(&g, "x"), a = g_exp(&g, g_scale(&g, x, 2)), sum = g_sum_row(&g, a);
    graph_output(&g, "y", g_offset(&g, g_div(&g, a, sum), 1));
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 2);
    assert_int_equal(hand_count(&f, OP_SUM_ROW), 1);
}

/* A node that reads state stays before the write, even if its result is used only later. */
static void test_state(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value leaf = g_leaf(&g, STORAGE_WEIGHTS, "w", whole(DT_F32), 0), x = input(&g, "x");
    value old = g_scale(&g, leaf, 2);
    g_store(&g, leaf, x);
    graph_output(&g, "y", g_add(&g, old, x));
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 0);
}

static void test_phases(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value x = input(&g, "x"), t = g_exp(&g, x);
    g.phase = PHASE_BACKWARD;
    graph_output(&g, "y", g_mul(&g, t, x));
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 0);
}

static void test_shapes(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value s = g_input(&g, "s", type_scalar(DT_F32)), x = input(&g, "x");
    value t = g_offset(&g, g_sqrt(&g, s), 1); /* a chain of scalars */
    graph_output(&g, "y", g_exp(&g, g_mul(&g, x, t)));
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 2);
}

static void test_masks_of_attention(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    struct dropout d = {DROPOUT_ATTENTION, 51, 1, 2};
    value step = g_input(&g, "step", type_scalar(DT_I32));
    value x = g_input(&g, "x", type_4d(DT_F32, 2, 3, 17, 17));
    graph_output(&g, "y", g_dropout(&g, g_scale(&g, x, 2), step, d));
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 0);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void check_limits(const struct graph *g)
{
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op != OP_CHAIN) continue;
        assert_in_range(n->n_in, 1, MAX_IN);
        assert_in_range(n->n_out, 1, CHAIN_OUTPUTS);
        assert_in_range(n->attr.chain->steps, 2, CHAIN_STEPS);
    }
}

static void test_long_chains(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value y = input(&g, "x");
    for (int i = 0; i < 2 * CHAIN_STEPS + 8; i++) y = g_scale(&g, y, 0.5);
    graph_output(&g, "y", y);
    struct graph f = fused(&g);
    check_limits(&f);
    assert_int_equal(hand_count(&f, OP_CHAIN), 3);
    assert_int_equal(hand_count(&f, OP_SCALE), 0);
}

static void test_many_inputs(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value y = input(&g, "x");
    for (int i = 0; i < 12; i++) y = g_add(&g, y, input(&g, arena_printf(&arena, "x%d", i)));
    graph_output(&g, "y", y);
    struct graph f = fused(&g);
    check_limits(&f);
    assert_int_equal(hand_count(&f, OP_CHAIN), 2);
}

static void test_many_outputs(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value y = input(&g, "x");
    for (int i = 0; i < 2 * CHAIN_OUTPUTS + 1; i++) {
        y = g_scale(&g, y, 0.5);
        graph_output(&g, arena_printf(&arena, "y%d", i), y);
    }
    struct graph f = fused(&g);
    check_limits(&f);
    assert_int_equal(hand_count(&f, OP_CHAIN), 2); /* both full; the last operator is separate */
    assert_int_equal(hand_count(&f, OP_SCALE), 1);
}

static void test_many_dropouts(void **state)
{
    (void)state;
    struct graph g;
    graph_init(&g, &arena);
    value step = g_input(&g, "step", type_scalar(DT_I32)), y = input(&g, "x");
    for (uint32_t i = 0; i < 4; i++) {
        struct dropout d = {DROPOUT_POINTWISE, 51, 1, i};
        y = g_dropout(&g, g_scale(&g, y, 0.5), step, d);
    }
    graph_output(&g, "y", y);
    struct graph f = fused(&g);
    assert_int_equal(hand_count(&f, OP_CHAIN), 2);
}

/* --- bitwise equality ------------------------------------------------------------------------- */

/* A random graph of pointwise operators and a few sums over rows. */
struct maker {
    struct graph *g;
    uint32_t seed;
    uint64_t drawn;
    value tensor[64], vector[64];
    int tensors, vectors;
    value step;
};

static int below(struct maker *m, int n)
{
    return (int)rng_below(7, RNG_TEST, m->seed, m->drawn++, n);
}

static value any(struct maker *m)
{
    return m->tensor[below(m, m->tensors)];
}

static value of_one(struct maker *m, value x)
{
    struct graph *g = m->g;
    struct dropout d = {DROPOUT_POINTWISE, 51, 1, m->seed};
    switch (below(m, 15)) {
    case 0:
        return g_scale(g, x, -0.7);
    case 1:
        return g_offset(g, x, 0.3);
    case 2:
        return g_at_most(g, x, 0.5);
    case 3:
        return g_exp(g, g_at_most(g, x, 2));
    case 4:
        return g_log(g, g_offset(g, g_mul(g, x, x), 1));
    case 5:
        return g_sqrt(g, g_mul(g, x, x));
    case 6:
        return g_rsqrt(g, g_offset(g, g_mul(g, x, x), 1));
    case 7:
        return g_tanh(g, x);
    case 8:
        return g_erf(g, x);
    case 9:
        return g_gelu(g, x, below(m, 2));
    case 10:
        return g_dropout(g, x, m->step, d);
    case 11:
        return g_relu(g, x);
    case 12:
        return g_elu(g, x);
    case 13:
        return g_silu(g, x);
    default: {
        enum dtype dtype = graph_type(g, x)->dtype, other = dtype == DT_F32 ? DT_BF16 : DT_F32;
        return g_cast(g, g_scale(g, g_cast(g, x, other), 1.1), dtype);
    }
    }
}

static value slope_of(struct maker *m, value dy, value y)
{
    value in[] = {dy, y};
    switch (below(m, 5)) {
    case 0:
        return g_where_positive(m->g, dy, y);
    case 4:
        return g_where_not_positive(m->g, dy, y);
    case 1:
        return graph_add(m->g, OP_ELU_GRAD, NULL, 2, in, NULL);
    case 2:
        return g_silu_grad(m->g, dy, y);
    default:
        return g_gelu_grad(m->g, dy, y, below(m, 2));
    }
}

static value of_two(struct maker *m, value a, value b)
{
    switch (below(m, 4)) {
    case 0:
        return g_add(m->g, a, b);
    case 1:
        return g_sub(m->g, a, b);
    case 2:
        return g_mul(m->g, a, b);
    default:
        return g_div(m->g, a, g_offset(m->g, g_mul(m->g, b, b), 1));
    }
}

static void make_node(struct maker *m)
{
    struct graph *g = m->g;
    enum dtype dtype = graph_type(g, m->tensor[0])->dtype;
    value y;
    switch (below(m, 7)) {
    case 0:
    case 1:
        y = of_two(m, any(m), any(m));
        break;
    case 2:
        y = of_two(m, any(m), m->vector[below(m, m->vectors)]);
        break;
    case 3:
        y = slope_of(m, any(m), any(m));
        break;
    case 4:
        y = of_two(m, g_fill(g, whole(dtype), 1.1), any(m));
        break;
    default:
        y = of_one(m, any(m));
    }
    m->tensor[m->tensors++] = y;
    if (below(m, 8) == 0) m->vector[m->vectors++] = g_scale(g, g_sum_row(g, y), 0.01);
}

static void make_graph(struct graph *g, uint32_t seed, enum dtype dtype)
{
    struct maker m = {.g = g, .seed = seed, .tensors = 2, .vectors = 3};
    m.step = g_input(g, "step", type_scalar(DT_I32));
    m.tensor[0] = g_input(g, "x", whole(dtype));
    m.tensor[1] = g_input(g, "z", whole(dtype));
    m.vector[0] = g_input(g, "scalar", type_scalar(dtype));
    m.vector[1] = g_input(g, "rows", type_2d(dtype, ROWS, 1));
    m.vector[2] = g_input(g, "columns", type_1d(dtype, COLUMNS));
    for (int i = 0; i < 24; i++) make_node(&m);
    for (int i = 2; i < m.tensors; i++)
        if (i == m.tensors - 1 || below(&m, 6) == 0)
            graph_output(g, arena_printf(g->arena, "y%d", i), m.tensor[i]);
}

static void feed(struct hand *h, const char *name, enum dtype dtype, int64_t n, uint32_t sequence)
{
    float x[ROWS * COLUMNS];
    uint16_t *narrow = hand_input(h, name);
    hand_fill(x, n, sequence);
    if (dtype == DT_F32) memcpy(narrow, x, (size_t)n * sizeof *x);
    for (int64_t i = 0; dtype == DT_BF16 && i < n; i++) memcpy(&narrow[i], (char *)&x[i] + 2, 2);
}

static void run_graph(struct hand *h, uint32_t seed, enum dtype dtype, bool chains, bool poison)
{
    struct plan_options options = {.poison = poison};
    hand_init(h);
    make_graph(&h->graph, seed, dtype);
    hand_ok(graph_verify(&h->graph));
    if (chains) h->graph = fused(&h->graph);
    check_limits(&h->graph);
    hand_plan(h, &options);
    feed(h, "x", dtype, (int64_t)ROWS * COLUMNS, 1);
    feed(h, "z", dtype, (int64_t)ROWS * COLUMNS, 2);
    feed(h, "scalar", dtype, 1, 3);
    feed(h, "rows", dtype, ROWS, 4);
    feed(h, "columns", dtype, COLUMNS, 5);
    *(int32_t *)hand_input(h, "step") = 11;
    hand_run(h);
}

static void test_bits(void **state)
{
    (void)state;
    int chains = 0, taken = 0;
    for (uint32_t seed = 0; seed < 120; seed++) {
        enum dtype dtype = seed % 2 ? DT_BF16 : DT_F32;
        struct hand parts, one;
        run_graph(&parts, seed, dtype, false, false);
        run_graph(&one, seed, dtype, true, seed % 4 > 1);
        chains += hand_count(&one.graph, OP_CHAIN);
        taken += parts.graph.nodes - one.graph.nodes;
        for (int i = 0; i < parts.graph.outputs; i++) {
            const char *name = parts.graph.output[i].name;
            int64_t bytes = type_bytes(graph_type(&parts.graph, parts.graph.output[i].v));
            if (memcmp(hand_output(&parts, name), hand_output(&one, name), (size_t)bytes) != 0)
                fail_msg("graph %u, %s: other bits", seed, name);
        }
        hand_close(&parts);
        hand_close(&one);
    }
    assert_true(chains > 200 && taken > 1000);
}

/* Clipping by the gradient norm is one kernel at `full` and several kernels at lower rungs. */
static void test_clipping(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct model m;
    struct graph g;
    model_init(&m, &c.model, TINY_VOCAB, 1, &arena);
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        c.plan.fusion = (enum fusion)fusion;
        hand_ok(program_graph(GRAPH_UPDATE, &c, &m, NULL, NULL, NULL, &g, &arena));
        bool full = fusion == FUSION_FULL;
        assert_int_equal(hand_count(&g, OP_CHAIN), full);
        assert_int_equal(hand_count(&g, OP_AT_MOST), !full);
        if (!full) continue;
        is_chain(&g, 4, 1, 2); /* from the sum of squares to the norm and the coefficient */
        assert_int_equal(hand_count(&g, OP_FILL), 0);
    }
}

int main(void)
{
#define CHAIN_TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)
    const struct CMUnitTest tests[] = {
        CHAIN_TEST(test_a_diamond),
        CHAIN_TEST(test_constants_are_not_inputs),
        CHAIN_TEST(test_one_operator_stays),
        CHAIN_TEST(test_readers_of_one_tensor),
        CHAIN_TEST(test_readers_stay_apart),
        CHAIN_TEST(test_the_first_input),
        CHAIN_TEST(test_results_used_outside),
        CHAIN_TEST(test_no_cycle),
        CHAIN_TEST(test_state),
        CHAIN_TEST(test_phases),
        CHAIN_TEST(test_shapes),
        CHAIN_TEST(test_masks_of_attention),
        CHAIN_TEST(test_long_chains),
        CHAIN_TEST(test_many_inputs),
        CHAIN_TEST(test_many_outputs),
        CHAIN_TEST(test_many_dropouts),
        CHAIN_TEST(test_bits),
        CHAIN_TEST(test_clipping),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
