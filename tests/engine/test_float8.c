/* Training with dtype=float8: close to bfloat16 at every rung, only matmuls of blocks in 8 bits,
 * bitwise repeatable, and amax values of the previous steps. */
#include "../support/hand.h"
#include "../support/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 40 };
static const unsigned KINDS = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;

static void train(const struct config *c, float *ret_loss)
{
    struct tiny t;
    tiny_open(&t, c, KINDS);
    for (int i = 0; i < STEPS; i++) ret_loss[i] = tiny_step(&t, i, 1e-3);
    tiny_close(&t);
}

static double furthest(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < STEPS; i++) {
        double off = fabs((double)a[i] - (double)b[i]);
        most = off > most ? off : most;
    }
    return most;
}

static void compare(struct config *c)
{
    float bf16[STEPS], loss[STEPS];
    c->plan.dtype = PRECISION_BFLOAT16;
    train(c, bf16);
    assert_true(bf16[0] - bf16[STEPS - 1] > 0.2f); /* the model learns */
    c->plan.dtype = PRECISION_FLOAT8;
    for (int gradients = FLOAT8_E5M2; gradients <= FLOAT8_E4M3; gradients++) {
        c->plan.float8_gradients = (enum float8)gradients;
        train(c, loss);
        double off = furthest(loss, bf16);
        if (off > 0.03)
            fail_msg("fusion %d, bias %d, recompute %d, gradients %d: off by %.4f",
                     (int)c->plan.fusion, c->model.bias, (int)c->plan.recompute, gradients, off);
        assert_true(off > 0); /* 8 bits are really used */
    }
}

static void test_loss_is_close_to_bf16(void **state)
{
    (void)state;
    for (int fusion = FUSION_OP; fusion <= FUSION_FULL; fusion++)
        for (int bias = 0; bias < 2; bias++) {
            struct config c = tiny_config();
            c.plan.fusion = (enum fusion)fusion;
            c.model.bias = bias;
            compare(&c);
        }
    for (int fusion = FUSION_OP; fusion <= FUSION_FULL; fusion++)
        for (int recompute = RECOMPUTE_GELU; recompute <= RECOMPUTE_BLOCK; recompute++) {
            struct config c = tiny_config();
            c.plan.fusion = (enum fusion)fusion;
            c.plan.recompute = (enum recompute)recompute;
            compare(&c);
        }
}

static int count(const struct graph *g, enum op op, enum dtype dtype)
{
    int n = 0;
    for (int id = 0; id < g->nodes; id++)
        n += g->node[id].op == op && graph_type(g, g->node[id].in[0])->dtype == dtype;
    return n;
}

/* A block has twelve matmuls and twelve quantized tensors: four weights, their inputs, and the
 * gradients of their outputs. */
static void test_only_block_matmuls(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    int layers = (int)c.model.n_layer;
    c.plan.dtype = PRECISION_FLOAT8;
    tiny_open(&t, &c, KINDS | 1u << GRAPH_EVAL);
    const struct graph *g = &t.engine.program.graph[GRAPH_MICRO];
    assert_int_equal(count(g, OP_MATMUL_SCALED, DT_E4M3) + count(g, OP_MATMUL_SCALED, DT_E5M2),
                     12 * layers);
    assert_int_equal(count(g, OP_QUANTIZE, DT_F32), 12 * layers);
    assert_int_equal(count(&t.engine.program.graph[GRAPH_EVAL], OP_QUANTIZE, DT_F32), 0);
    int head = count(g, OP_MATMUL, DT_BF16) + count(g, OP_LINEAR, DT_BF16);
    assert_int_equal(head, 3);
    tiny_close(&t);
    c.model.n_embd = 24; /* not a multiple of 16 */
    tiny_open(&t, &c, KINDS);
    assert_int_equal(count(&t.engine.program.graph[GRAPH_MICRO], OP_QUANTIZE, DT_F32), 0);
    tiny_close(&t);
}

static void test_runs_are_repeatable(void **state)
{
    (void)state;
    float a[STEPS], b[STEPS];
    struct config c = tiny_config();
    c.model.dropout = 0.2;
    c.plan.dtype = PRECISION_FLOAT8;
    train(&c, a);
    train(&c, b);
    assert_memory_equal(a, b, sizeof a);
}

/* After step s, the slot s of every tensor holds the amax of that step; the next slot is zero. */
static void test_amax_history(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    c.plan.dtype = PRECISION_FLOAT8;
    tiny_open(&t, &c, KINDS);
    const float *amax = t.engine.storage.base[STORAGE_AMAX];
    int64_t tensors = t.engine.storage.bytes[STORAGE_AMAX] / (AMAX_STEPS * (int64_t)sizeof(float));
    assert_int_equal(tensors, 12 * c.model.n_layer);
    for (int step = 0; step < AMAX_STEPS + 3; step++) {
        tiny_step(&t, step, 1e-3);
        for (int64_t i = 0; i < tensors; i++) {
            const float *of = amax + i * AMAX_STEPS;
            for (int s = 0; s < AMAX_STEPS; s++) {
                int age = (step - s + 2 * AMAX_STEPS) % AMAX_STEPS;
                bool kept = age < AMAX_STEPS - 1 && age <= step;
                if ((of[s] > 0) != kept)
                    fail_msg("step %d, tensor %d, slot %d: %g", step, (int)i, s, (double)of[s]);
            }
        }
    }
    tiny_close(&t);
}

/* Leaf number `at` of the amax history, or NULL. */
static const struct node *magnitude(const struct graph *g, int at)
{
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_AMAX && at-- == 0) return n;
    }
    return NULL;
}

/* Offsets are assigned in graph order, so all micro-steps of a step must contain the same tensors
 * in the same order. */
static void test_micro_steps_share_amax_history(void **state)
{
    (void)state;
    for (int fusion = FUSION_OP; fusion <= FUSION_FULL; fusion++) {
        struct config c = tiny_config();
        struct tiny t;
        c.plan.dtype = PRECISION_FLOAT8;
        c.plan.fusion = (enum fusion)fusion;
        c.train.gradient_accumulation_steps = 2;
        tiny_open(&t, &c, KINDS | 1u << GRAPH_MICRO_MORE);
        const struct graph *first = &t.engine.program.graph[GRAPH_MICRO],
                           *more = &t.engine.program.graph[GRAPH_MICRO_MORE];
        int n = 0;
        for (const struct node *a, *b; (a = magnitude(first, n)); n++) {
            b = magnitude(more, n);
            assert_non_null(b);
            assert_string_equal(a->scope, b->scope);
            assert_int_equal(a->layer, b->layer);
            assert_int_equal(a->attr.leaf.offset, b->attr.leaf.offset);
        }
        assert_null(magnitude(more, n));
        assert_int_equal(n, 12 * c.model.n_layer);
        tiny_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_is_close_to_bf16),
        cmocka_unit_test(test_only_block_matmuls),
        cmocka_unit_test(test_runs_are_repeatable),
        cmocka_unit_test(test_amax_history),
        cmocka_unit_test(test_micro_steps_share_amax_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
