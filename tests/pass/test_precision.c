/* Mixed precision and packed weights in the graph: which values are bf16, where casts are, and what
 * the update writes. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "engine/copies.h"
#include "graph/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;

static struct graph built(enum graph_kind kind, struct config *c, const char *last)
{
    static struct model m;
    struct graph g;
    model_init(&m, &c->model, TINY_VOCAB, 1, &arena);
    const struct target null = {.backend = backend_find("null")};
    const struct pass_packing *packing = copies_packing(c, &m, &null, &arena);
    hand_ok(program_graph(kind, c, &m, packing, NULL, last, &g, &arena));
    return g;
}

static struct config mixed(enum fusion fusion, bool flash)
{
    struct config c = tiny_config();
    c.plan.dtype = PRECISION_BFLOAT16;
    c.plan.fusion = fusion;
    c.plan.flash = flash;
    return c;
}

static int count(const struct graph *g, enum op op)
{
    int n = 0;
    for (int id = 0; id < g->nodes; id++) n += g->node[id].op == op;
    return n;
}

/* At every rung operands of matmuls are bf16; parameter gradients, statistics, the loss are f32. */
static void test_types(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            struct config c = mixed((enum fusion)fusion, flash);
            struct graph g = built(GRAPH_MICRO, &c, NULL);
            int products = 0;
            for (int id = 0; id < g.nodes; id++) {
                const struct node *n = &g.node[id];
                const struct type *out = graph_type(&g, n->out[0]);
                if (n->op == OP_MATMUL || n->op == OP_LINEAR) {
                    products++;
                    assert_int_equal(graph_type(&g, n->in[0])->dtype, DT_BF16);
                    assert_int_equal(graph_type(&g, n->in[1])->dtype, DT_BF16);
                    if (n->op == OP_LINEAR)
                        assert_int_equal(graph_type(&g, n->in[2])->dtype, DT_F32);
                    bool sum = n->op == OP_MATMUL && n->attr.matmul.ta && out->rank == 2;
                    assert_int_equal(out->dtype, sum ? DT_F32 : DT_BF16);
                }
                if (n->op == OP_STORE) assert_int_equal(out->dtype, DT_F32);
                if (n->op == OP_EXP || n->op == OP_SUM_ROW || n->op == OP_RSQRT)
                    assert_int_equal(out->dtype, DT_F32);
                if (n->op == OP_LAYERNORM)
                    assert_int_equal(graph_type(&g, n->out[1])->dtype, DT_F32);
                if (n->op == OP_ATTENTION)
                    assert_int_equal(graph_type(&g, n->out[1])->dtype, DT_F32);
            }
            assert_true(products > 20);
            assert_int_equal(graph_type(&g, graph_find_output(&g, "loss"))->dtype, DT_F32);
        }
}

/* Below `full` casts are separate kernels; at `full` none remain. */
static void test_casts(void **state)
{
    (void)state;
    struct config c = mixed(FUSION_OP, true);
    struct graph g = built(GRAPH_MICRO, &c, NULL);
    assert_true(count(&g, OP_CAST) > 20);
    for (int flash = 0; flash < 2; flash++) {
        c = mixed(FUSION_FULL, flash);
        g = built(GRAPH_MICRO, &c, NULL);
        assert_int_equal(count(&g, OP_CAST), 0);
        assert_int_equal(count(&g, OP_GELU_GRAD), 0);
        assert_int_equal(count(&g, OP_GELU_BOTH), 2);
        assert_int_equal(count(&g, OP_EMBED_SUM), 1);
        assert_int_equal(count(&g, OP_SCORE_SOFTMAX), flash ? 0 : 2);
    }
}

static void test_casts_are_shared(void **state)
{
    (void)state;
    struct config c = mixed(FUSION_PRIMITIVE, false);
    struct graph g = built(GRAPH_MICRO, &c, "precision");
    for (int a = 0; a < g.nodes; a++)
        for (int b = a + 1; b < g.nodes; b++) {
            const struct node *x = &g.node[a], *y = &g.node[b];
            if (x->op != OP_CAST || y->op != OP_CAST || x->in[0].i != y->in[0].i) continue;
            assert_int_not_equal(graph_type(&g, x->out[0])->dtype,
                                 graph_type(&g, y->out[0])->dtype);
        }
}

static void test_outputs_keep_their_type(void **state)
{
    (void)state;
    for (int kind = GRAPH_LOGITS; kind <= GRAPH_DECODE; kind++) {
        struct config c = mixed(FUSION_FULL, true);
        struct graph g = built((enum graph_kind)kind, &c, NULL);
        assert_int_equal(graph_type(&g, graph_find_output(&g, "logits"))->dtype, DT_F32);
    }
}

/* One AdamW writes weights, moments and the bf16 copy. Then each weight of a matmul is packed in
 * two layouts: 4 weights in each of two layers, and the table. */
static void test_update(void **state)
{
    (void)state;
    for (int bias = 0; bias < 2; bias++) {
        struct config c = mixed(FUSION_FULL, true);
        c.model.bias = bias;
        c.plan.pack_weights = PACKING_TRUE;
        struct graph g = built(GRAPH_UPDATE, &c, NULL);
        assert_int_equal(count(&g, OP_ADAMW_COPY), 1);
        assert_int_equal(count(&g, OP_ADAMW), 0);
        assert_int_equal(count(&g, OP_CAST), 0);
        assert_int_equal(count(&g, OP_PACK), 18);
        c.plan.dtype = PRECISION_FLOAT32;
        g = built(GRAPH_UPDATE, &c, NULL);
        assert_int_equal(count(&g, OP_ADAMW_COPY), 0);
        assert_int_equal(count(&g, OP_ADAMW), 1);
        assert_int_equal(count(&g, OP_PACK), 18);
        c.plan.fusion = FUSION_OP;
        g = built(GRAPH_UPDATE, &c, NULL);
        assert_int_equal(count(&g, OP_PACK), 0);
    }
}

/* The update and the refresh write each packed leaf that a matmul reads, with the same type. */
static void test_packed_leaves_meet(void **state)
{
    (void)state;
    struct config c = mixed(FUSION_FULL, true);
    c.plan.pack_weights = PACKING_TRUE;
    struct graph micro = built(GRAPH_MICRO, &c, NULL);
    int packed = 0;
    for (int kind = GRAPH_UPDATE; kind <= GRAPH_REFRESH; kind++) {
        struct graph writer = built((enum graph_kind)kind, &c, NULL);
        for (int id = 0; id < micro.nodes; id++) {
            const struct node *leaf = &micro.node[id];
            if (leaf->op != OP_LEAF || leaf->attr.leaf.storage != STORAGE_PACKED) continue;
            value v = graph_find_leaf(&writer, STORAGE_PACKED, leaf->scope);
            if (!v.i) fail_msg("no step writes %s", leaf->scope);
            assert_int_equal(graph_producer(&writer, v)->attr.leaf.offset, leaf->attr.leaf.offset);
            assert_true(type_same(graph_type(&writer, v), graph_type(&micro, leaf->out[0])));
            packed++;
        }
    }
    assert_int_equal(packed, 2 * 18);
}

/* Weights are packed only at `full` and only if a step has many tokens. */
static void test_packing_is_chosen(void **state)
{
    (void)state;
    const struct {
        int64_t batch;
        enum packing asked;
        enum fusion fusion;
        bool packs;
    } cases[] = {
        {3, PACKING_AUTO, FUSION_FULL, false}, {128, PACKING_AUTO, FUSION_FULL, true},
        {3, PACKING_TRUE, FUSION_FULL, true},  {128, PACKING_FALSE, FUSION_FULL, false},
        {128, PACKING_TRUE, FUSION_OP, false},
    };
    struct model m;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct config c = mixed(cases[i].fusion, true);
        c.data.batch_size = cases[i].batch;
        c.plan.pack_weights = cases[i].asked;
        model_init(&m, &c.model, TINY_VOCAB, 1, &arena);
        const struct target null = {.backend = backend_find("null")};
        const struct pass_packing *p = copies_packing(&c, &m, &null, &arena);
        assert_int_equal(p != NULL, cases[i].packs);
    }
}

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_casts_are_shared),
        cmocka_unit_test(test_outputs_keep_their_type),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_packed_leaves_meet),
        cmocka_unit_test(test_packing_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
