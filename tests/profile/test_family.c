/* The family and the range of each kernel of a step, at every rung. */
#include "profile/profile.h"

#include "../support/hand.h"
#include "../support/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct tiny tiny;

static void open_model(int kind, enum fusion fusion, bool flash, enum recompute recompute)
{
    struct config c = tiny_config();
    c.model.kind = (enum model_kind)kind;
    c.model.dropout = 0.2;
    c.model.rope_theta = 1e4;
    c.plan.fusion = fusion;
    c.plan.flash = flash;
    c.plan.recompute = recompute;
    tiny_open(&tiny, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
}

static void open_rung(enum fusion fusion, bool flash, enum recompute recompute)
{
    open_model(MODEL_GPT, fusion, flash, recompute);
}

static const char *text_of(const struct node *n)
{
    struct range r = range_of(n, optimizer_of(&tiny.config), &tiny.arena);
    const char *text = r.word[0];
    for (int i = 1; i < r.words; i++) text = arena_printf(&tiny.arena, "%s / %s", text, r.word[i]);
    return text;
}

/* The number of kernels of a family in these phases (a mask) whose range begins with `range`. */
static int count(enum family family, unsigned phases, const char *range)
{
    static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_UPDATE};
    int n = 0;
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        const struct plan *p = &tiny.engine.program.plan[kinds[k]];
        for (int id = 0; id < p->steps; id++) {
            const struct node *node = &p->graph->node[id];
            bool primitive = tiny.config.plan.fusion == FUSION_PRIMITIVE;
            if (!p->step[id].kernel || family_of(node, primitive) != family) continue;
            if (!(phases >> node->phase & 1)) continue;
            n += strncmp(text_of(node), range, strlen(range)) == 0;
        }
    }
    return n;
}

static void test_slow_attention_has_names(void **state)
{
    (void)state;
    open_rung(FUSION_FULL, false, RECOMPUTE_NONE);
    assert_int_equal(count(FAMILY_MATMUL, ~0u, "forward / block 1 / attention / scores"), 1);
    assert_int_equal(count(FAMILY_SOFTMAX, ~0u, "forward / block 1 / attention / softmax"), 1);
    assert_int_equal(count(FAMILY_MATMUL, ~0u, "forward / block 1 / attention / weighted sum"), 1);
    assert_int_equal(count(FAMILY_MATMUL, ~0u, "backward / block 1 / attention / scores"), 2);
    assert_int_equal(count(FAMILY_MATMUL, ~0u, "backward / block 1 / attention / weighted sum"), 2);
    assert_int_equal(count(FAMILY_MATMUL, ~0u, "forward / block 0 / attention / q, k, v"), 1);
    /* An operator and its gradient share one range. */
    assert_int_equal(count(FAMILY_SOFTMAX, ~0u, "backward / block 1 / attention / softmax"), 1);
    assert_int_equal(count(FAMILY_COPIES, ~0u, "forward / block 1 / attention / heads"), 2);
    assert_int_equal(count(FAMILY_COPIES, ~0u, "backward / block 1 / attention / heads"), 2);
    assert_int_equal(count(FAMILY_MATMUL, ~0u, "backward / block 0 / MLP / down"), 2);
    assert_int_equal(count(FAMILY_ATTENTION, ~0u, ""), 0);
    tiny_close(&tiny);
}

static void test_flash_attention_is_one_kernel(void **state)
{
    (void)state;
    open_rung(FUSION_FULL, true, RECOMPUTE_NONE);
    assert_int_equal(count(FAMILY_ATTENTION, ~0u, "forward / block 1 / attention / flash"), 1);
    assert_int_equal(count(FAMILY_ATTENTION, ~0u, "backward / block 1 / attention / flash"), 1);
    assert_int_equal(count(FAMILY_SOFTMAX, ~0u, ""), 0);
    assert_int_equal(count(FAMILY_OPTIMIZER, ~0u, "update / AdamW"), 1);
    assert_int_equal(count(FAMILY_OPTIMIZER, ~0u, "update / gradient norm"), 1);
    assert_int_equal(count(FAMILY_OPTIMIZER, ~0u, "forward"), 0);
    assert_int_equal(
        count(FAMILY_LOSS, ~0u, "forward / loss") + count(FAMILY_LOSS, ~0u, "backward / loss"), 1);
    tiny_close(&tiny);
}

/* At every rung the update has the name of the optimizer that it is. */
static void test_the_update_has_its_optimizers_name(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++) {
        struct config c = tiny_config();
        c.train.optimizer = OPTIMIZER_SGD;
        c.plan.fusion = (enum fusion)fusion;
        tiny_open(&tiny, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
        assert_true(count(FAMILY_OPTIMIZER, ~0u, "update / SGD") > 0);
        assert_int_equal(count(FAMILY_OPTIMIZER, ~0u, "update / AdamW"), 0);
        tiny_close(&tiny);
    }
}

/* The primitive rung turns a norm into sums, differences and roots: all belong to the norm. */
static void test_primitives_belong_to_their_layer(void **state)
{
    (void)state;
    open_rung(FUSION_PRIMITIVE, false, RECOMPUTE_NONE);
    assert_true(count(FAMILY_NORMS, 1 << PHASE_FORWARD, "forward / block 0 / norm 1") > 5);
    assert_int_equal(count(FAMILY_POINTWISE, ~0u, "forward / block 0 / norm 1"), 0);
    assert_true(count(FAMILY_SOFTMAX, ~0u, "forward / block 0 / attention / softmax") >= 5);
    assert_true(count(FAMILY_POINTWISE, ~0u, "forward / block 0 / MLP / GELU") >= 4);
    assert_true(count(FAMILY_OPTIMIZER, ~0u, "update / AdamW") > 10);
    assert_int_equal(count(FAMILY_POINTWISE, 1 << PHASE_UPDATE, ""), 0);
    tiny_close(&tiny);
}

/* If layers are single operators, a sum in the range of a norm adds two gradients. */
static void test_a_residual_gradient_is_pointwise(void **state)
{
    (void)state;
    open_rung(FUSION_OP, true, RECOMPUTE_NONE);
    assert_int_equal(count(FAMILY_NORMS, ~0u, "backward / block 1 / norm 2"), 1);
    assert_int_equal(count(FAMILY_POINTWISE, ~0u, "backward / block 1 / norm 2"), 1);
    tiny_close(&tiny);
}

static void test_recomputed_kernels_have_a_range(void **state)
{
    (void)state;
    open_rung(FUSION_OP, false, RECOMPUTE_BLOCK);
    assert_int_equal(
        count(FAMILY_SOFTMAX, ~0u, "backward / block 1 / recomputed / attention / softmax"), 1);
    assert_int_equal(count(FAMILY_SOFTMAX, ~0u, "forward / block 1 / recomputed"), 0);
    tiny_close(&tiny);
}

/* No kernel at any rung is named after its scope. */
static void test_every_kernel_has_a_range(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int variant = 0; variant < 4; variant++) {
            open_model(variant / 2 ? MODEL_CS336 : MODEL_GPT, (enum fusion)fusion, variant % 2,
                       RECOMPUTE_BLOCK);
            for (int kind = 0; kind < GRAPH_COUNT; kind++)
                for (int id = 0;
                     tiny.engine.program.built[kind] && id < tiny.engine.program.plan[kind].steps;
                     id++) {
                    const struct node *n = &tiny.engine.program.graph[kind].node[id];
                    if (!tiny.engine.program.plan[kind].step[id].kernel) continue;
                    const char *text = text_of(n);
                    if (strchr(text, '_') || !strchr(text, '/'))
                        fail_msg("%s %s is called %s", op_def(n->op)->name, n->scope, text);
                }
            tiny_close(&tiny);
        }
}

/* A sum of squares is the optimizer's only in the update; norms are found in any scope. */
static void test_other_models(void **state)
{
    (void)state;
    const unsigned training = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;
    const unsigned both = 1 << PHASE_FORWARD | 1 << PHASE_BACKWARD;
    for (int kind = MODEL_ATTENTION_BLOCK; kind < MODEL_COUNT; kind++) {
        struct config c = tiny_config();
        c.model.kind = (enum model_kind)kind;
        tiny_open_bare(&tiny, &c, 0, training);
        assert_int_equal(count(FAMILY_OPTIMIZER, both, ""), 0);
        assert_true(count(FAMILY_LOSS, both, "") > 0);
        if (kind == MODEL_ELU) assert_int_equal(count(FAMILY_POINTWISE, both, "forward / elu"), 1);
        if (kind == MODEL_ATTENTION_BLOCK)
            assert_int_equal(count(FAMILY_ATTENTION, both, "forward / block 0 / attention"), 1);
        tiny_close(&tiny);
        c.plan.fusion = FUSION_PRIMITIVE;
        tiny_open_bare(&tiny, &c, 0, training);
        if (kind != MODEL_ELU) assert_true(count(FAMILY_NORMS, 1 << PHASE_FORWARD, "") > 5);
        tiny_close(&tiny);
    }
}

/* The parts of a CS336 model; below `full` each matmul is separate. */
static void test_cs336(void **state)
{
    (void)state;
    const unsigned forward = 1 << PHASE_FORWARD;
    for (int full = 0; full < 2; full++) {
        struct config c = tiny_config();
        c.model.kind = MODEL_CS336;
        c.model.rope_theta = 1e4;
        c.plan.fusion = full ? FUSION_FULL : FUSION_OP;
        tiny_open(&tiny, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
        static const char block[] = "forward / block 1 / ";
        const char *in = arena_printf(&tiny.arena, "%sattention / q", block);
        assert_int_equal(count(FAMILY_MATMUL, forward, in), 1);
        in = arena_printf(&tiny.arena, "%sattention / q, k, v", block);
        assert_int_equal(count(FAMILY_MATMUL, forward, in), full);
        in = arena_printf(&tiny.arena, "%sattention / RoPE", block);
        assert_int_equal(count(FAMILY_POINTWISE, forward, in), 1);
        in = arena_printf(&tiny.arena, "%sfeed-forward / gate", block);
        assert_int_equal(count(FAMILY_MATMUL, forward, in), 1);
        in = arena_printf(&tiny.arena, "%sfeed-forward / up", block);
        assert_int_equal(count(FAMILY_MATMUL, forward, in), !full);
        in = arena_printf(&tiny.arena, "%sfeed-forward / SwiGLU", block);
        assert_int_equal(count(FAMILY_POINTWISE, forward, in), full ? 1 : 2);
        in = arena_printf(&tiny.arena, "%snorm 2", block);
        assert_int_equal(count(FAMILY_NORMS, forward, in), 1);
        assert_int_equal(count(FAMILY_NORMS, forward, "forward / final norm"), 1);
        assert_int_equal(count(FAMILY_POINTWISE, forward, "forward / RoPE angles"), 1);
        tiny_close(&tiny);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_attention_has_names),
        cmocka_unit_test(test_flash_attention_is_one_kernel),
        cmocka_unit_test(test_the_update_has_its_optimizers_name),
        cmocka_unit_test(test_primitives_belong_to_their_layer),
        cmocka_unit_test(test_a_residual_gradient_is_pointwise),
        cmocka_unit_test(test_recomputed_kernels_have_a_range),
        cmocka_unit_test(test_every_kernel_has_a_range),
        cmocka_unit_test(test_cs336),
        cmocka_unit_test(test_other_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
