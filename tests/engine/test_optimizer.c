/* The table of optimizers: SGD with momentum against its formula, and properties of its row. */
#include "engine/optimizer.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "engine/facts.h"
#include "engine/weights.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { KINDS = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE, STEPS = 10 };
static const double LR = 0.05;

static struct config sgd_config(enum fusion fusion)
{
    struct config c = tiny_config();
    c.train.optimizer = OPTIMIZER_SGD;
    c.train.momentum = 0.9;
    c.train.grad_clip = 0.5;
    c.plan.fusion = fusion;
    return c;
}

/* clip_grad_norm_, then torch.optim.SGD(momentum, weight_decay), in double precision on the
 * engine's gradients. */
static void formula(const struct tiny *t, double norm, double *w, double *v)
{
    const struct config_train *c = &t->config.train;
    const float *gradient = tiny_range(t, STORAGE_GRADIENTS);
    double clip = fmin(1, c->grad_clip / (norm + 1e-6));
    for (int k = 0; k < t->engine.program.model.parameters; k++) {
        const struct parameter *p = &t->engine.program.model.parameter[k];
        for (int64_t i = p->offset; i < p->offset + type_elements(&p->type); i++) {
            double g = clip * (double)gradient[i];
            if (p->decay) g += c->weight_decay * w[i];
            v[i] = c->momentum * v[i] + g;
            w[i] -= LR * v[i];
        }
    }
}

static double norm_of(const struct tiny *t)
{
    const float *g = tiny_range(t, STORAGE_GRADIENTS);
    double sum = 0;
    for (int64_t i = 0; i < t->engine.program.model.elements; i++)
        sum += (double)g[i] * (double)g[i];
    return sqrt(sum);
}

static void near_doubles(const struct tiny *t, enum storage storage, const double *expected)
{
    int64_t n = t->engine.program.model.elements;
    float *rounded = malloc((size_t)n * sizeof *rounded);
    assert_non_null(rounded);
    for (int64_t i = 0; i < n; i++) rounded[i] = (float)expected[i];
    double error = hand_distance(tiny_range(t, storage), rounded, n);
    free(rounded);
    if (!(error <= 1e-6)) fail_msg("storage %d is %.2e off", storage, error);
}

static void ten_steps(enum fusion fusion)
{
    struct config c = sgd_config(fusion);
    struct tiny t;
    tiny_open(&t, &c, KINDS);
    int64_t n = t.engine.program.model.elements;
    double *w = ARENA_NEW(&t.arena, double, n), *v = ARENA_NEW(&t.arena, double, n);
    for (int64_t i = 0; i < n; i++) w[i] = (double)tiny_range(&t, STORAGE_WEIGHTS)[i];
    bool clipped = false, decayed = false, plain = false;
    for (int step = 0; step < STEPS; step++) {
        tiny_loss(&t, GRAPH_MICRO, step);
        double norm = norm_of(&t);
        formula(&t, norm, w, v);
        clipped |= norm > c.train.grad_clip;
        assert_float_equal(tiny_update(&t, step + 1, LR), norm, 1e-5 * norm);
    }
    for (int k = 0; k < t.engine.program.model.parameters; k++)
        *(t.engine.program.model.parameter[k].decay ? &decayed : &plain) = true;
    assert_true(clipped && decayed && plain); /* every part of the formula was used */
    near_doubles(&t, STORAGE_WEIGHTS, w);
    near_doubles(&t, STORAGE_MOMENT1, v);
    tiny_close(&t);
}

static void test_sgd_is_its_formula(void **state)
{
    (void)state;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        ten_steps((enum fusion)fusion);
}

static void test_sgd_learns(void **state)
{
    (void)state;
    struct config c = sgd_config(FUSION_FULL);
    struct tiny t;
    tiny_open(&t, &c, KINDS);
    float first = tiny_step(&t, 0, LR), last = 0;
    for (int step = 1; step < 60; step++) last = tiny_step(&t, step, LR);
    assert_true(last < 0.8F * first);
    tiny_close(&t);
}

/* With fusion=full, one operator updates all parameters and writes the bf16 copy, if any. */
static void test_one_operator_updates_all(void **state)
{
    (void)state;
    struct config c = sgd_config(FUSION_FULL);
    struct tiny t;
    tiny_open(&t, &c, KINDS);
    assert_int_equal(hand_count(&t.engine.program.graph[GRAPH_UPDATE], OP_SGDM), 1);
    tiny_close(&t);
    c.plan.dtype = PRECISION_BFLOAT16;
    tiny_open(&t, &c, KINDS);
    assert_int_equal(hand_count(&t.engine.program.graph[GRAPH_UPDATE], OP_SGDM), 0);
    assert_int_equal(hand_count(&t.engine.program.graph[GRAPH_UPDATE], OP_SGDM_COPY), 1);
    assert_int_equal(hand_count(&t.engine.program.graph[GRAPH_UPDATE], OP_ADAMW_COPY), 0);
    tiny_close(&t);
    c.plan.fusion = FUSION_OP;
    tiny_open(&t, &c, KINDS);
    assert_int_equal(hand_count(&t.engine.program.graph[GRAPH_UPDATE], OP_SGDM),
                     t.engine.program.model.parameters);
    tiny_close(&t);
}

/* SGD has one state tensor per parameter instead of AdamW's two, in memory and in checkpoints. */
static void test_state(void **state)
{
    (void)state;
    struct config c = sgd_config(FUSION_FULL), adamw = tiny_config();
    struct tiny t;
    tiny_open(&t, &adamw, KINDS);
    struct facts with_adamw = facts_of(&t.engine.program);
    const struct weights_tensor *tensor = weights_tensors(&t.engine, &t.arena);
    assert_string_equal(tensor[0].state[0].suffix, ".m");
    assert_string_equal(tensor[0].state[1].suffix, ".v");
    assert_ptr_equal(tensor[0].state[1].data,
                     tiny_parameter(&t, STORAGE_MOMENT2, &t.engine.program.model.parameter[0]));
    tiny_close(&t);
    tiny_open(&t, &c, KINDS);
    struct facts with_sgd = facts_of(&t.engine.program);
    assert_true(with_sgd.optimizer > 0);
    assert_int_equal(2 * with_sgd.optimizer, with_adamw.optimizer);
    assert_true(with_sgd.total < with_adamw.total);
    tensor = weights_tensors(&t.engine, &t.arena);
    assert_string_equal(tensor[0].state[0].suffix, ".momentum");
    assert_ptr_equal(tensor[0].state[0].data,
                     tiny_parameter(&t, STORAGE_MOMENT1, &t.engine.program.model.parameter[0]));
    assert_null(tensor[0].state[1].data);
    tiny_close(&t);
}

/* SGD with momentum built from operators, as in a row without a fused operator. */
static value build_sgd(struct graph *g, const struct config_train *c, const struct parameter *p,
                       const struct optimizer_operands *in)
{
    value d = g_mul(g, in->gradient, in->clip);
    if (p->decay) d = g_add(g, d, g_scale(g, in->weights, c->weight_decay));
    value v = g_add(g, g_scale(g, in->state[0], c->momentum), d);
    value w = g_sub(g, in->weights, g_mul(g, v, in->input[0]));
    g_store(g, in->state[0], v);
    return g_store(g, in->weights, w);
}

enum { WEIGHTS_N = 5 * 7, BIAS_N = 11, RANGES_N = WEIGHTS_N + BIAS_N };

/* Updates a matrix with weight decay and a vector without; returns the weights, then the state. */
static void update_by_row(const struct optimizer *o, const struct config *c,
                          float ret_values[2][RANGES_N])
{
    static const enum storage written[] = {STORAGE_WEIGHTS, STORAGE_MOMENT1};
    struct parameter p[] = {
        {.name = "fc.weight", .type = type_2d(DT_F32, 5, 7), .decay = true},
        {.name = "fc.bias", .type = type_1d(DT_F32, BIAS_N), .offset = 3 * RANGE_ALIGNMENT}};
    const struct model m = {.parameters = COUNT_OF(p), .parameter = p};
    struct hand s;
    hand_init(&s);
    optimizer_update(&s.graph, &m, c, o);
    hand_plan(&s, &(struct plan_options){0});
    *(float *)hand_input(&s, "lr") = (float)LR;
    for (int i = 0; i < COUNT_OF(p); i++) {
        int64_t n = type_elements(&p[i].type);
        hand_fill(hand_leaf(&s, STORAGE_GRADIENTS, p[i].name), n, (uint32_t)i);
        for (int k = 0; k < COUNT_OF(written); k++)
            hand_fill(hand_leaf(&s, written[k], p[i].name), n, (uint32_t)(2 + 2 * k + i));
    }
    hand_run(&s);
    assert_true(*hand_output(&s, "grad_norm") > c->train.grad_clip); /* else nothing is clipped */
    for (int k = 0; k < COUNT_OF(written); k++) {
        memcpy(ret_values[k], hand_leaf(&s, written[k], p[0].name), WEIGHTS_N * sizeof(float));
        memcpy(ret_values[k] + WEIGHTS_N, hand_leaf(&s, written[k], p[1].name),
               BIAS_N * sizeof(float));
    }
    hand_close(&s);
}

static void test_update_built_from_operators(void **state)
{
    (void)state;
    struct config c = sgd_config(FUSION_FULL);
    const struct optimizer *sgd = optimizer_of(&c);
    struct optimizer built = *sgd;
    built.build = build_sgd;
    built.attr = NULL;
    float fused[2][RANGES_N], composed[2][RANGES_N];
    update_by_row(sgd, &c, fused);
    update_by_row(&built, &c, composed);
    for (int k = 0; k < 2; k++) assert_true(hand_distance(composed[k], fused[k], RANGES_N) <= 1e-6);
}

/* The inputs and outputs of every optimizer's operator match its row. */
static void test_rows_fit_their_updates(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        struct config c = tiny_config();
        c.train.optimizer = (enum optimizer_kind)kind;
        const struct optimizer *o = optimizer_of(&c);
        assert_true(!o->build == !!o->attr); /* one of the two forms of an update */
        if (!o->build) {
            assert_int_equal(op_writes(o->op), 1 + o->states);
            assert_int_equal(op_def(o->op)->least_in, 1 + o->states + 1 + o->inputs + 1);
        }
        for (int i = 0; i < o->inputs; i++)
            assert_true(isfinite(o->input[i].at(&c.train, 0)) && o->input[i].timed > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd_is_its_formula),
        cmocka_unit_test(test_sgd_learns),
        cmocka_unit_test(test_one_operator_updates_all),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_rows_fit_their_updates),
        cmocka_unit_test(test_update_built_from_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
