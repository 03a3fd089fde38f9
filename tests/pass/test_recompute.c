/* The passes `regions` and `recompute` on the graph of a small GPT: which nodes are recomputed and
 * where, and which values are kept. tests/engine/test_recompute.c checks bitwise equality. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/threads.h"
#include "engine/tune.h"
#include "pass/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { L = 3 };

static struct arena arena;
static struct model model;
static struct config config;

static int fresh(void **state)
{
    (void)state;
    arena = (struct arena){0};
    config = tiny_config();
    config.model.n_layer = L;
    config.model.bias = true;
    config.model.dropout = 0.2;
    return 0;
}

static int done(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct graph after(enum graph_kind kind, enum recompute recompute, const char *last)
{
    struct graph g;
    config.plan.recompute = recompute;
    model_init(&model, &config.model, TINY_VOCAB, 1, &arena);
    hand_ok(program_graph(kind, &config, &model, NULL, NULL, last, &g, &arena));
    return g;
}

static bool is_recomputed(const struct node *n)
{
    size_t length = strlen(n->scope), word = strlen(".recompute");
    return length >= word && !strcmp(n->scope + length - word, ".recompute");
}

static int count_recomputed(const struct graph *g, enum op op)
{
    int count = 0;
    for (int id = 0; id < g->nodes; id++)
        count += g->node[id].op == op && is_recomputed(&g->node[id]);
    return count;
}

static void each_rung(void (*check)(enum recompute recompute))
{
    for (int bits = 0; bits < 12; bits++) {
        config.plan.fusion = (enum fusion)(bits / 4);
        config.plan.flash = bits & 1;
        config.plan.dtype = bits & 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        for (int i = RECOMPUTE_GELU; i < RECOMPUTE_BLOCK + L; i++) check((enum recompute)i);
    }
}

/* The forward node that `again` recomputes: a node with the same operator and scope that is not
 * `taken` yet. */
static int original(const struct graph *g, const struct node *again, const bool *taken)
{
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->phase == PHASE_FORWARD && n->op == again->op && n->layer == again->layer &&
            !taken[id] && !strncmp(n->scope, again->scope, strlen(n->scope)) &&
            strlen(n->scope) + strlen(".recompute") == strlen(again->scope) &&
            !memcmp(&n->attr, &again->attr, sizeof n->attr) &&
            type_same(graph_type(g, n->out[0]), graph_type(g, again->out[0])))
            return id;
    }
    return -1;
}

/* Each recomputed node is in the backward pass, does not write state, and recomputes a different
 * forward node. */
static void once(enum recompute recompute)
{
    struct graph g = after(GRAPH_MICRO, recompute, "recompute");
    bool *taken = ARENA_NEW(&arena, bool, g.nodes);
    int count = 0;
    for (int id = 0; id < g.nodes; id++) {
        const struct node *n = &g.node[id];
        if (!is_recomputed(n)) continue;
        int of = original(&g, n, taken);
        if (of < 0) fail_msg("%s %s has no original of its own", op_def(n->op)->name, n->scope);
        taken[of] = true;
        count++;
        assert_int_equal(n->phase, PHASE_BACKWARD);
        assert_true(n->layer >= 0 && n->op != OP_LEAF && op_writes(n->op) == 0);
    }
    assert_true(count >= L);
}

static void test_each_once(void **state)
{
    (void)state;
    each_rung(once);
}

/* The node after a run of recomputed nodes reads the last of them. */
static void before_the_first_reader(enum recompute recompute)
{
    struct graph g = after(GRAPH_MICRO, recompute, "recompute");
    for (int id = 0; id + 1 < g.nodes; id++) {
        if (!is_recomputed(&g.node[id]) || is_recomputed(&g.node[id + 1])) continue;
        const struct node *made = &g.node[id], *next = &g.node[id + 1];
        bool reads = false;
        for (int i = 0; i < next->n_in; i++) {
            int v = next->in[i].i - made->out[0].i;
            reads |= v >= 0 && v < made->n_out;
        }
        if (!reads)
            fail_msg("%s %s does not read %s", op_def(next->op)->name, next->scope, made->scope);
    }
}

static void test_before_the_first_reader(void **state)
{
    (void)state;
    each_rung(before_the_first_reader);
}

/* The backward pass reads only one forward value of each block, or of each group of blocks that are
 * recomputed together: the residual sum. */
static void one_residual_a_block(enum recompute recompute)
{
    if (recompute < RECOMPUTE_BLOCK) return;
    const int at_once = (int)recompute - RECOMPUTE_BLOCK + 1, regions = (L + at_once - 1) / at_once;
    struct graph g = after(GRAPH_MICRO, recompute, NULL);
    const struct type residual =
        type_3d(DT_F32, config.data.batch_size, config.model.block_size, config.model.n_embd);
    bool *read = ARENA_NEW(&arena, bool, g.values);
    int kept = 0;
    for (int id = 0; id < g.nodes; id++)
        for (int i = 0; i < g.node[id].n_in; i++) {
            value v = g.node[id].in[i];
            const struct node *from = graph_producer(&g, v);
            bool of_block = from->phase == PHASE_FORWARD && from->layer >= 0 && from->op != OP_LEAF;
            if (g.node[id].phase != PHASE_BACKWARD || !of_block || read[v.i]) continue;
            read[v.i] = true;
            kept++;
            if (!type_same_shape(graph_type(&g, v), &residual))
                fail_msg("%s %s is kept", op_def(from->op)->name, from->scope);
        }
    assert_true(kept == regions ||
                kept == regions - 1); /* the last is read through the final norm */
}

static void test_one_residual_per_block(void **state)
{
    (void)state;
    each_rung(one_residual_a_block);
}

/* The fusing passes also match recomputed nodes. The last matmul of a block is not recomputed. */
static void test_recomputed_nodes_are_fused(void **state)
{
    (void)state;
    for (int flash = 0; flash < 2; flash++) {
        config.plan.flash = flash;
        struct graph g = after(GRAPH_MICRO, RECOMPUTE_BLOCK, NULL);
        assert_int_equal(count_recomputed(&g, OP_LAYERNORM), L);
        assert_int_equal(count_recomputed(&g, OP_LINEAR), 3 * L); /* not mlp.c_proj */
        assert_int_equal(count_recomputed(&g, OP_ADD_LAYERNORM), L);
        assert_int_equal(count_recomputed(&g, OP_GELU_BOTH), L);
        assert_int_equal(hand_count(&g, OP_GELU_BOTH), L);
        assert_int_equal(count_recomputed(&g, OP_ATTENTION), flash ? L : 0);
        assert_int_equal(count_recomputed(&g, OP_SCORE_SOFTMAX), flash ? 0 : L);
        assert_int_equal(count_recomputed(&g, OP_SPLIT_HEADS), flash ? 0 : L);
        assert_int_equal(count_recomputed(&g, OP_MATMUL), flash ? 0 : 2 * L);
        static const enum op none[] = {OP_DROPOUT, OP_ADD, OP_SOFTMAX, OP_SCALE, OP_GELU};
        for (int i = 0; i < COUNT_OF(none); i++) assert_int_equal(count_recomputed(&g, none[i]), 0);
        g = after(GRAPH_MICRO, RECOMPUTE_BLOCK, "fuse"); /* softmax is fused with its own dropout */
        assert_int_equal(count_recomputed(&g, OP_SCORE_SOFTMAX), flash ? 0 : L);
    }
}

/* If two blocks are recomputed together, everything except the last matmul of the second block is
 * recomputed; the residual sum between the blocks is needed. */
static void test_some_blocks_at_once(void **state)
{
    (void)state;
    struct graph g = after(GRAPH_MICRO, (enum recompute)(RECOMPUTE_BLOCK + 1), NULL);
    assert_int_equal(count_recomputed(&g, OP_LINEAR), 3 * L + 1); /* + 1: mlp.c_proj of h.0 */
    assert_int_equal(count_recomputed(&g, OP_LAYERNORM) + count_recomputed(&g, OP_ADD_LAYERNORM),
                     2 * L);
    for (int id = 0; id < g.nodes; id++)
        if (is_recomputed(&g.node[id]) && strstr(g.node[id].scope, "mlp.c_proj") &&
            g.node[id].op == OP_LINEAR)
            assert_int_equal(g.node[id].layer, 0);
    g = after(GRAPH_MICRO, (enum recompute)(RECOMPUTE_BLOCK + L - 1), NULL);
    assert_int_equal(count_recomputed(&g, OP_LINEAR), 4 * L - 1);
}

/* The forward pass does not compute the slope of GELU, which would have to be kept. */
static void test_gelu_alone(void **state)
{
    (void)state;
    struct graph g = after(GRAPH_MICRO, RECOMPUTE_GELU, NULL);
    struct graph none = after(GRAPH_MICRO, RECOMPUTE_NONE, NULL);
    assert_int_equal(count_recomputed(&g, OP_GELU_BOTH), L);
    assert_int_equal(hand_count(&g, OP_GELU_BOTH), L);
    assert_int_equal(hand_count(&g, OP_GELU), L);
    assert_int_equal(g.nodes, none.nodes + L);
    config.plan.fusion = FUSION_PRIMITIVE;
    g = after(GRAPH_MICRO, RECOMPUTE_GELU, NULL);
    assert_int_equal(count_recomputed(&g, OP_ERF), L);
    assert_int_equal(count_recomputed(&g, OP_MATMUL), 0);
}

static bool gains_by_matmuls(const void *who, const struct node *n, const struct type *in,
                             const struct type *out)
{
    (void)who, (void)in, (void)out;
    return n->op == OP_LINEAR_GELU || n->op == OP_MATMUL_GELU_GRAD;
}

/* If fused kernels are faster, GELU is fused with the matmul before it, in the forward pass and in
 * the recomputed nodes. With recompute=gelu the matmul is not recomputed. */
static void test_fused_into_matmuls(void **state)
{
    (void)state;
    const struct pass_kernels kernels = {.is_faster = gains_by_matmuls};
    for (int recompute = RECOMPUTE_GELU; recompute <= RECOMPUTE_BLOCK; recompute++) {
        bool block = recompute == RECOMPUTE_BLOCK;
        struct graph g;
        config.plan.recompute = (enum recompute)recompute;
        model_init(&model, &config.model, TINY_VOCAB, 1, &arena);
        hand_ok(program_graph(GRAPH_MICRO, &config, &model, NULL, &kernels, NULL, &g, &arena));
        assert_int_equal(hand_count(&g, OP_LINEAR_GELU), block ? 2 * L : L);
        assert_int_equal(count_recomputed(&g, OP_LINEAR_GELU), block ? L : 0);
        assert_int_equal(count_recomputed(&g, OP_GELU), block ? 0 : L);
        assert_int_equal(hand_count(&g, OP_GELU), block ? 0 : L);
        assert_int_equal(hand_count(&g, OP_MATMUL_GELU_GRAD), L);
        for (int id = 0; id < g.nodes;
             id++) /* the forward pass of a recomputed block does not keep GELU's input */
            if (g.node[id].op == OP_LINEAR_GELU)
                assert_int_equal(g.node[id].attr.linear.keep, !block || is_recomputed(&g.node[id]));
    }
}

/* bf16 below `full`: a matmul reads a cast of the GELU, which must not be kept either. */
static void test_casts_for_readers(void **state)
{
    (void)state;
    config.plan.fusion = FUSION_PRIMITIVE;
    config.plan.dtype = PRECISION_BFLOAT16;
    struct graph g = after(GRAPH_MICRO, RECOMPUTE_GELU, NULL);
    const int64_t wide = 4 * config.model.n_embd;
    for (int id = 0; id < g.nodes; id++)
        for (int i = 0; i < g.node[id].n_in; i++) {
            const struct node *from = graph_producer(&g, g.node[id].in[i]);
            if (g.node[id].phase != PHASE_BACKWARD || from->phase != PHASE_FORWARD) continue;
            const struct type *t = graph_type(&g, from->out[0]);
            if (t->rank == 3 && type_columns(t) == wide && !strstr(from->scope, "c_fc"))
                fail_msg("%s %s is kept", op_def(from->op)->name, from->scope);
        }
}

static void test_nothing_without_a_backward_pass(void **state)
{
    (void)state;
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        struct graph g = after((enum graph_kind)kind, RECOMPUTE_BLOCK, NULL);
        struct graph none = after((enum graph_kind)kind, RECOMPUTE_NONE, NULL);
        bool micro = kind == GRAPH_MICRO || kind == GRAPH_MICRO_MORE || kind == GRAPH_MICRO_LAST;
        if (micro ? g.nodes <= none.nodes : g.nodes != none.nodes)
            fail_msg("%s: %d nodes instead of %d", graph_kind_name((enum graph_kind)kind), g.nodes,
                     none.nodes);
        for (int id = 0; id < none.nodes; id++) assert_false(is_recomputed(&none.node[id]));
    }
}

/* Returns the arena bytes of a micro-step of a deep model; *ret_flops: its FLOPs. */
static int64_t planned(enum recompute recompute, double *ret_flops)
{
    struct program p;
    config.plan.recompute = recompute;
    hand_ok(program_for(&p, &config, TINY_VOCAB, 1u << GRAPH_MICRO, "cpu", &arena));
    int64_t bytes = p.plan[GRAPH_MICRO].arena_bytes;
    *ret_flops = plan_cost(&p.plan[GRAPH_MICRO]).flops;
    return bytes;
}

/* A block has about 16 values of the size of the residual sum, more without flash and below `full`.
 * FLOPs grow by at most a third. */
static void test_memory_shrinks(void **state)
{
    (void)state;
    threads_set(2); /* each thread has its own scratch */
    config.model.n_layer = 8;
    config.model.block_size = 64;
    for (int bits = 0; bits < 12; bits++) {
        config.plan.fusion = (enum fusion)(bits / 4);
        config.plan.flash = bits & 1;
        config.plan.dtype = bits & 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        double flops[3];
        int64_t none = planned(RECOMPUTE_NONE, &flops[0]),
                gelu = planned(RECOMPUTE_GELU, &flops[1]);
        int64_t block = planned(RECOMPUTE_BLOCK, &flops[2]);
        if (!(gelu < none && 2 * block < gelu))
            fail_msg("fusion %d, flash %d, dtype %d: %lld, %lld, %lld bytes", config.plan.fusion,
                     config.plan.flash, config.plan.dtype, (long long)none, (long long)gelu,
                     (long long)block);
        assert_true(flops[1] > flops[0] && flops[1] < 1.1 * flops[0]);
        assert_true(flops[2] > 1.15 * flops[0] && flops[2] < 4.0 / 3 * flops[0]);
        double most;
        planned((enum recompute)(RECOMPUTE_BLOCK + 7), &most); /* all eight at once */
        assert_true(most > flops[2] && most < 1.35 * flops[0]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_once),
        TEST(test_before_the_first_reader),
        TEST(test_one_residual_per_block),
        TEST(test_recomputed_nodes_are_fused),
        TEST(test_some_blocks_at_once),
        TEST(test_gelu_alone),
        TEST(test_fused_into_matmuls),
        TEST(test_casts_for_readers),
        TEST(test_nothing_without_a_backward_pass),
        TEST(test_memory_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
