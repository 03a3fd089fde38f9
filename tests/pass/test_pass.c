/* Passes on the graph of a small GPT: which nodes remain at each rung, which are removed, and the
 * effect of each pass alone. */
#include "pass/pass.h"

#include "../support/hand.h"
#include "../support/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static struct model model;
static struct config config;

static int fresh(void **state)
{
    (void)state;
    arena = (struct arena){0};
    config = tiny_config();
    config.model.bias = true;
    config.model.dropout = 0.2;
    model_init(&model, &config.model, TINY_VOCAB, 1, &arena);
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct graph after(enum graph_kind kind, const char *last)
{
    struct graph g;
    hand_ok(program_graph(kind, &config, &model, NULL, NULL, last, &g, &arena));
    return g;
}

static bool is_flash(enum op op)
{
    return op == OP_ATTENTION || op == OP_ATTENTION_GRAD;
}

static void test_each_rung_leaves_nothing_above_it(void **state)
{
    (void)state;
    static const enum op_level highest[] = {[FUSION_PRIMITIVE] = LEVEL_PRIMITIVE,
                                            [FUSION_OP] = LEVEL_LAYER,
                                            [FUSION_FULL] = LEVEL_FUSED};
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++)
            for (int kind = 0; kind < GRAPH_COUNT; kind++) {
                config.plan.fusion = (enum fusion)fusion;
                config.plan.flash = flash;
                struct graph g = after((enum graph_kind)kind, NULL);
                bool reaches = false;
                for (int id = 0; id < g.nodes; id++) {
                    enum op op = g.node[id].op;
                    if (is_flash(op) && flash) continue;
                    if (is_flash(op) || op_def(op)->level > highest[fusion])
                        fail_msg("%s at fusion %d, flash %d, %s", op_def(op)->name, fusion, flash,
                                 graph_kind_name((enum graph_kind)kind));
                    reaches |= op_def(op)->level == highest[fusion];
                }
                assert_true(reaches || kind == GRAPH_DECODE || kind == GRAPH_UPDATE ||
                            kind == GRAPH_REFRESH);
            }
}

static void test_flash_keeps_attention(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        config.plan.fusion = (enum fusion)fusion;
        config.plan.flash = true;
        struct graph g = after(GRAPH_MICRO, NULL);
        assert_int_equal(hand_count(&g, OP_ATTENTION), 2);
        assert_int_equal(hand_count(&g, OP_ATTENTION_GRAD), 2);
        assert_int_equal(hand_count(&g, OP_CAUSAL_MASK), 0);
        config.plan.flash = false;
        g = after(GRAPH_MICRO, NULL);
        assert_int_equal(hand_count(&g, OP_ATTENTION), 0);
        assert_int_equal(hand_count(&g, OP_MATMUL) > 0, 1);
    }
}

static void test_expansion_keeps_marks(void **state)
{
    (void)state;
    config.plan.fusion = FUSION_PRIMITIVE;
    config.plan.flash = false;
    struct graph g = after(GRAPH_MICRO, "expand");
    bool seen = false;
    for (int id = 0; id < g.nodes; id++) {
        const struct node *n = &g.node[id];
        if (n->op != OP_CAUSAL_MASK || n->layer != 1) continue;
        seen = true;
        assert_int_equal(n->phase, PHASE_FORWARD);
        assert_string_equal(n->scope, "h.1.attn.scores");
    }
    assert_true(seen);
}

/* Every dx is used, even that of the first norm, whose input is the embedding. Nodes that compute
 * slow attention's log-sum-exp or a detached maximum must be removed. */
static void test_dead_code_is_gone(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            config.plan.fusion = (enum fusion)fusion;
            config.plan.flash = flash;
            struct graph g = after(GRAPH_MICRO, NULL);
            bool *used = ARENA_NEW(&arena, bool, g.values);
            for (int id = 0; id < g.nodes; id++)
                for (int i = 0; i < g.node[id].n_in; i++) used[g.node[id].in[i].i] = true;
            for (int i = 0; i < g.outputs; i++) used[g.output[i].v.i] = true;
            for (int id = 0; id < g.nodes; id++) {
                const struct node *n = &g.node[id];
                bool needed = op_writes(n->op) > 0 || n->op == OP_LEAF;
                for (int i = 0; i < n->n_out; i++) needed |= used[n->out[i].i];
                if (!needed) fail_msg("node %d %s %s", id, op_def(n->op)->name, n->scope);
            }
        }
}

/* The gradient of x is not requested, so the matmul that computes it is dead. */
static void test_unused_gradient_is_removed(void **state)
{
    (void)state;
    struct graph g, out;
    graph_init(&g, &arena);
    value x = g_input(&g, "x", type_2d(DT_F32, 4, 8)), d;
    value w = g_input(&g, "w", type_2d(DT_F32, 8, 8));
    value y = g_matmul(&g, g_exp(&g, x), w, false, false); /* (4,8) */
    value loss =
        g_reshape(&g, g_sum_row(&g, g_reshape(&g, y, type_1d(DT_F32, 32))), type_scalar(DT_F32));
    hand_ok(graph_differentiate(&g, loss, g_fill(&g, type_scalar(DT_F32), 1), 1, &w, &d));
    graph_output(&g, "d", d);
    assert_int_equal(hand_count(&g, OP_MATMUL), 3); /* y, dx, dw */
    hand_ok(pass_run(pass_find("dead"), &g, &out, &(struct pass_options){0}));
    assert_int_equal(hand_count(&out, OP_MATMUL), 1); /* dw; y is not an output */
    assert_int_equal(hand_count(&out, OP_EXP), 1);
    assert_int_not_equal(graph_find_output(&out, "d").i, 0);
}

static void test_state_is_never_dead(void **state)
{
    (void)state;
    struct graph g, out;
    graph_init(&g, &arena);
    value x = g_input(&g, "x", type_1d(DT_F32, 8));
    value w = g_leaf(&g, STORAGE_WEIGHTS, "w", type_1d(DT_F32, 8), 0);
    g_exp(&g, x);
    g_store(&g, w, g_scale(&g, x, 2));
    hand_ok(pass_run(pass_find("dead"), &g, &out, &(struct pass_options){0}));
    assert_int_equal(out.nodes, 4); /* x, w, scale, store */
    assert_int_equal(hand_count(&out, OP_EXP), 0);
}

static void test_stops_after_the_named_pass(void **state)
{
    (void)state;
    config.plan.fusion = FUSION_FULL;
    config.plan.flash = false;
    struct graph made = after(GRAPH_MICRO, "model"), grown = after(GRAPH_MICRO, "expand");
    struct graph precise = after(GRAPH_MICRO, "precision"), fused = after(GRAPH_MICRO, "fuse");
    struct graph whole = after(GRAPH_MICRO, "dead"), all = after(GRAPH_MICRO, NULL);
    assert_int_equal(hand_count(&made, OP_ATTENTION), 2);
    assert_int_equal(hand_count(&made, OP_STORE), 0);
    assert_int_equal(hand_count(&grown, OP_ATTENTION), 0);
    assert_int_equal(hand_count(&grown, OP_STORE), 0); /* before differentiation */
    assert_int_equal(hand_count(&precise, OP_STORE), model.parameters);
    assert_int_equal(hand_count(&precise, OP_SCORE_SOFTMAX), 0);
    assert_int_equal(hand_count(&fused, OP_SCORE_SOFTMAX), 2);
    assert_true(whole.nodes < fused.nodes);
    assert_int_equal(whole.nodes, all.nodes);
    struct graph g;
    assert_int_equal(program_graph(GRAPH_MICRO, &config, &model, NULL, NULL, "fuze", &g, &arena),
                     ST_USAGE);
    assert_non_null(strstr(fail_message(), "there is no pass fuze"));
}

/* At the rungs below `full` the pass `fuse` changes nothing; in fp32 `precision` changes
 * nothing. */
static void test_passes_that_are_off(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_OP; fusion++) {
        config.plan.fusion = (enum fusion)fusion;
        struct graph before = after(GRAPH_MICRO, "precision"), fused = after(GRAPH_MICRO, "fuse");
        assert_int_equal(before.nodes, fused.nodes);
        for (int id = 0; id < before.nodes; id++) {
            assert_int_equal(before.node[id].op, fused.node[id].op);
            assert_memory_equal(before.node[id].in, fused.node[id].in, sizeof fused.node[id].in);
        }
    }
}

static void test_double_precision(void **state)
{
    (void)state;
    struct graph g = after(GRAPH_MICRO, "expand"), out;
    struct pass_options o = {.rung = RUNG_FULL, .flash = true, .compute = DT_F64};
    hand_ok(pass_run(pass_find("precision"), &g, &out, &o));
    assert_int_equal(out.nodes, g.nodes);
    for (int v = 1; v < out.values; v++) {
        enum dtype was = g.info[v].type.dtype, is = out.info[v].type.dtype;
        assert_int_equal(is, was == DT_F32 ? DT_F64 : was);
    }
}

/* tf32 is set on matmuls and attention with f32 operands at every rung, but not with bf16 operands,
 * which need no rounding. */
static void test_numerics_are_marked(void **state)
{
    (void)state;
    config.plan.deterministic = true;
    for (int wide = 0; wide < 2; wide++)
        for (int flash = 0; flash < 2; flash++) {
            config.plan.flash = flash;
            config.plan.hopper = wide;
            config.plan.dtype = wide ? PRECISION_TFLOAT32 : PRECISION_BFLOAT16;
            struct graph g = after(GRAPH_MICRO, NULL);
            for (int id = 0; id < g.nodes; id++) {
                const struct node *n = &g.node[id];
                if (n->op == OP_MATMUL) assert_int_equal(n->numerics.tf32, wide);
                if (n->op == OP_LINEAR) assert_int_equal(n->numerics.tf32, wide);
                if (!is_flash(n->op)) continue;
                assert_int_equal(n->numerics.tf32, wide);
                assert_true(n->numerics.deterministic);
                assert_int_equal(n->numerics.portable, !wide);
            }
            assert_true(hand_count(&g, OP_MATMUL) > 0 && hand_count(&g, OP_LINEAR) > 0);
            assert_int_equal(hand_count(&g, OP_ATTENTION) > 0, flash);
        }
}

/* The attributes of a matmul are passed on to its gradients and its expansion. */
static void test_numerics_are_passed_on(void **state)
{
    (void)state;
    config.plan.dtype = PRECISION_TFLOAT32;
    struct graph g = after(GRAPH_MICRO, "numerics"), out;
    struct pass_options o = {.rung = RUNG_PRIMITIVE};
    hand_ok(pass_run(pass_find("expand"), &g, &out, &o));
    for (int id = 0; id < out.nodes; id++)
        if (out.node[id].op == OP_MATMUL) assert_true(out.node[id].numerics.tf32);
    assert_int_equal(hand_count(&out, OP_LINEAR) + hand_count(&out, OP_ATTENTION_GRAD), 0);
}

static enum status breaks_types(const struct graph *in, struct graph *out,
                                const struct pass_options *o)
{
    (void)o;
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) pass_copy_node(in, id, out, map);
    pass_finish(in, out, map);
    out->info[out->values - 1].type.dtype = DT_BF16;
    return ST_OK;
}

static void test_broken_graph_is_detected(void **state)
{
    (void)state;
    struct graph g = after(GRAPH_MICRO, "model"), out;
    const struct pass bad = {"bad", BEFORE_GRADIENT, breaks_types, ""};
    assert_int_not_equal(pass_run(&bad, &g, &out, &(struct pass_options){0}), ST_OK);
    assert_non_null(strstr(fail_message(), "pass bad: node"));
}

static void test_outputs_keep_their_names(void **state)
{
    (void)state;
    struct graph micro = after(GRAPH_MICRO, NULL), update = after(GRAPH_UPDATE, NULL);
    struct graph logits = after(GRAPH_LOGITS, NULL);
    assert_int_not_equal(graph_find_output(&micro, "loss").i, 0);
    assert_int_not_equal(graph_find_output(&update, "grad_norm").i, 0);
    assert_int_not_equal(graph_find_output(&logits, "logits").i, 0);
    /* Evaluation has neither dropout nor nodes after the loss. */
    struct graph eval = after(GRAPH_EVAL, NULL);
    for (int id = 0; id < eval.nodes; id++) {
        assert_int_equal(eval.node[id].phase, PHASE_FORWARD);
        if (eval.node[id].op == OP_ATTENTION)
            assert_int_equal(eval.node[id].attr.attention.drop.threshold, 0);
        if (eval.node[id].op == OP_ADD_LAYERNORM)
            assert_int_equal(eval.node[id].attr.norm.drop.threshold, 0);
    }
    assert_int_equal(hand_count(&eval, OP_DROPOUT), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_rung_leaves_nothing_above_it),
        TEST(test_flash_keeps_attention),
        TEST(test_expansion_keeps_marks),
        TEST(test_dead_code_is_gone),
        TEST(test_unused_gradient_is_removed),
        TEST(test_state_is_never_dead),
        TEST(test_stops_after_the_named_pass),
        TEST(test_passes_that_are_off),
        TEST(test_double_precision),
        TEST(test_numerics_are_marked),
        TEST(test_numerics_are_passed_on),
        TEST(test_broken_graph_is_detected),
        TEST(test_outputs_keep_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
