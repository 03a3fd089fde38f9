/* The pass `fuse` on matmuls and their operands: GELU, its gradient, gradients of biases and 8-bit
 * quantization of norms are fused only if a fused kernel is faster. */
#include "../support/hand.h"
#include "pass/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, T = 8, C = 16 };

typedef void build_fn(struct graph *g);

static void make(struct hand *s, build_fn *build)
{
    hand_init(s);
    build(&s->graph);
    hand_ok(graph_status(&s->graph));
}

static void feed_and_run(struct hand *s)
{
    hand_plan(s, NULL);
    for (int id = 0; id < s->graph.nodes; id++) {
        const struct node *n = &s->graph.node[id];
        if (n->op != OP_LEAF) continue;
        int64_t elements = type_elements(graph_type(&s->graph, n->out[0]));
        hand_fill(plan_address(&s->plan, n->out[0]), elements, (uint32_t)strlen(n->scope));
    }
    hand_run(s);
}

static bool kernel_is_faster(const void *who, const struct node *n, const struct type *in,
                             const struct type *out)
{
    (void)n, (void)in, (void)out;
    return *(const bool *)who;
}

struct expected {
    enum op op;
    int count;
};

/* Compares the node counts after the pass with those expected, and checks that all outputs are the
 * same. `does` is the result of pass_kernels.is_faster. */
static void check(build_fn *build, bool does, int n, const struct expected *e)
{
    const struct pass_kernels kernels = {kernel_is_faster, &does};
    struct pass_options o = {.rung = RUNG_FULL, .kernels = &kernels};
    struct hand plain, fused;
    make(&plain, build);
    make(&fused, build);
    hand_ok(pass_run(pass_find("fuse"), &fused.graph, &fused.graph, &o));
    hand_ok(pass_run(pass_find("dead"), &fused.graph, &fused.graph, &o));
    for (int i = 0; i < n; i++) {
        int count = hand_count(&fused.graph, e[i].op);
        if (count != e[i].count)
            fail_msg("%s: %d instead of %d", op_def(e[i].op)->name, count, e[i].count);
    }
    feed_and_run(&plain);
    feed_and_run(&fused);
    for (int i = 0; i < plain.graph.outputs; i++) {
        const char *name = plain.graph.output[i].name;
        int64_t elements = type_elements(graph_type(&plain.graph, plain.graph.output[i].v));
        double apart =
            hand_distance(hand_output(&fused, name), hand_output(&plain, name), elements);
        if (!(apart < 1e-6)) fail_msg("output %s differs by %.2e", name, apart);
    }
    hand_close(&plain);
    hand_close(&fused);
}

#define CHECK(build, does, ...)                                      \
    check(build, does, COUNT_OF(((struct expected[]){__VA_ARGS__})), \
          (const struct expected[]){__VA_ARGS__})

static value activations(struct graph *g)
{
    return g_input(g, "a", type_3d(DT_F32, B, T, C));
}

/* An MLP and its gradients, with weights laid out as in the model. */
static void perceptron_of(struct graph *g, bool bias)
{
    value a = activations(g), w = g_input(g, "weight", type_2d(DT_F32, C, 4 * C)), b = {0}, c = {0};
    value back = g_input(g, "back", type_2d(DT_F32, 4 * C, C));
    if (bias) b = g_input(g, "b", type_1d(DT_F32, 4 * C)), c = g_input(g, "cc", type_1d(DT_F32, C));
    value y = g_linear(g, g_gelu(g, g_linear(g, a, w, b, false), true), back, c, false);
    value loss = g_sum_row(g, g_reshape(g, g_mul(g, y, y), type_2d(DT_F32, 1, B * T * C)));
    loss = g_reshape(g, loss, type_scalar(DT_F32));
    graph_output(g, "loss", loss);
    value wrt[] = {a, w, back, b, c}, gradient[COUNT_OF(wrt)];
    int n = bias ? COUNT_OF(wrt) : COUNT_OF(wrt) - 2;
    hand_ok(graph_differentiate(g, loss, g_fill(g, type_scalar(DT_F32), 1), n, wrt, gradient));
    for (int i = 0; i < n; i++)
        graph_output(g, arena_printf(g->arena, "gradient %d", i), gradient[i]);
}

static void perceptron(struct graph *g)
{
    perceptron_of(g, true);
}

static void perceptron_without_bias(struct graph *g)
{
    perceptron_of(g, false);
}

static value product(struct graph *g)
{
    value w = g_input(g, "weight", type_2d(DT_F32, C, C)), b = g_input(g, "b", type_1d(DT_F32, C));
    return g_linear(g, activations(g), w, b, false);
}

/* The result of the matmul is used before its GELU, so the matmul must not move to the GELU. */
static void gelu_of_a_used_matmul(struct graph *g)
{
    value x = product(g), twice = g_scale(g, x, 2);
    graph_output(g, "y", g_gelu(g, x, true));
    graph_output(g, "twice", twice);
}

static void gelu_before_a_use(struct graph *g)
{
    value x = product(g);
    graph_output(g, "y", g_gelu(g, x, true));
    graph_output(g, "twice", g_scale(g, x, 2));
}

static void gelu_alone(struct graph *g)
{
    graph_output(g, "y", g_gelu(g, product(g), true));
}

/* The result of the matmul is also an output of the graph. */
static void gelu_of_an_output(struct graph *g)
{
    value x = product(g);
    graph_output(g, "x", x);
    graph_output(g, "y", g_gelu(g, x, false));
}

enum reader { CODES_ALONE, OF_THE_SUM, OF_THE_SUM_LATER, OF_THE_NORM };

/* A quantized norm of a sum. `who` selects another reader of the values in between. */
static void codes_of(struct graph *g, enum reader who)
{
    value step = g_input(g, "step", type_scalar(DT_I32));
    value amax = g_leaf(g, STORAGE_AMAX, "amax", type_1d(DT_F32, AMAX_STEPS), 0);
    value b = g_input(g, "bb", type_3d(DT_F32, B, T, C)), w = g_input(g, "w", type_1d(DT_F32, C));
    value sum = g_add(g, activations(g), b), y = g_layernorm(g, sum, w, (value){0}, 1e-5);
    if (who == OF_THE_SUM) graph_output(g, "twice", g_scale(g, sum, 2));
    union attr attr = {.quantize = {DT_E4M3, 3}}, product = {.matmul = {.tb = true}};
    value first = graph_add(g, OP_QUANTIZE, &attr, 3, (value[]){amax, y, step}, NULL);
    value codes = graph_out(first, 1), scale = graph_out(first, 3);
    value operands[] = {codes, codes, scale, scale};
    struct type t = type_2d(DT_F32, B * T, B * T);
    graph_output(g, "product", graph_add(g, OP_MATMUL_SCALED, &product, 4, operands, &t));
    if (who == OF_THE_SUM_LATER) graph_output(g, "twice", g_scale(g, sum, 2));
    if (who == OF_THE_NORM) graph_output(g, "norm", g_scale(g, y, 2));
    graph_output(g, "amax", first);
    graph_output(g, "sum", sum);
    graph_output(g, "mean", graph_out(y, 1));
    graph_output(g, "rstd", graph_out(y, 2));
}
static void codes_alone(struct graph *g)
{
    codes_of(g, CODES_ALONE);
}
static void codes_behind_a_use_of_the_sum(struct graph *g)
{
    codes_of(g, OF_THE_SUM);
}
static void codes_before_a_use_of_the_sum(struct graph *g)
{
    codes_of(g, OF_THE_SUM_LATER);
}
static void codes_of_a_used_norm(struct graph *g)
{
    codes_of(g, OF_THE_NORM);
}

static void test_quantized_norm(void **state)
{
    (void)state;
    CHECK(codes_alone, true, {OP_QUANTIZE_ADD_LAYERNORM, 1}, {OP_ADD_LAYERNORM, 0});
    CHECK(codes_alone, false, {OP_QUANTIZE_ADD_LAYERNORM, 0}, {OP_ADD_LAYERNORM, 1});
    CHECK(codes_before_a_use_of_the_sum, true, {OP_QUANTIZE_ADD_LAYERNORM, 1}, {OP_QUANTIZE, 0});
    CHECK(codes_behind_a_use_of_the_sum, true, {OP_QUANTIZE_ADD_LAYERNORM, 0}, {OP_QUANTIZE, 1});
    CHECK(codes_of_a_used_norm, true, {OP_QUANTIZE_ADD_LAYERNORM, 0}, {OP_QUANTIZE, 1});
}

static void test_all_of_an_mlp(void **state)
{
    (void)state;
    CHECK(perceptron, true, {OP_LINEAR_GELU, 1}, {OP_MATMUL_GELU_GRAD, 1}, {OP_MATMUL_SUM, 2},
          {OP_SUM_LEADING, 0}, {OP_GELU_BOTH, 0}, {OP_LINEAR, 1}, {OP_MATMUL, 1});
    CHECK(perceptron_without_bias, true, {OP_LINEAR_GELU, 1}, {OP_MATMUL_GELU_GRAD, 1},
          {OP_MATMUL_SUM, 0}, {OP_MATMUL, 4});
}

static void test_only_where_kernels_gain(void **state)
{
    (void)state;
    CHECK(perceptron, false, {OP_LINEAR_GELU, 0}, {OP_MATMUL_GELU_GRAD, 0}, {OP_MATMUL_SUM, 0},
          {OP_SUM_LEADING, 2}, {OP_GELU_BOTH, 0});
}

static void test_uses_of_the_matmul(void **state)
{
    (void)state;
    CHECK(gelu_of_a_used_matmul, true, {OP_LINEAR_GELU, 0}, {OP_LINEAR, 1});
    CHECK(gelu_before_a_use, true, {OP_LINEAR_GELU, 1}, {OP_LINEAR, 0});
    CHECK(gelu_alone, true, {OP_LINEAR_GELU, 1}, {OP_LINEAR, 0});
    CHECK(gelu_of_an_output, true, {OP_LINEAR_GELU, 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantized_norm),
        cmocka_unit_test(test_all_of_an_mlp),
        cmocka_unit_test(test_only_where_kernels_gain),
        cmocka_unit_test(test_uses_of_the_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
