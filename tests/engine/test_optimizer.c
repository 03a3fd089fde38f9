/* Optimizers are rows of a table: SGD with momentum against its formula, and the operators, state
 * and checkpoint tensors that follow from its row. */
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

/* clip_grad_norm_ and torch.optim.SGD(momentum, weight_decay) in double, on the engine's
 * gradients. */
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
    assert_true(clipped && decayed && plain); /* every part of the formula is tried */
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

/* At `full` one operator updates all parameters, and writes their bf16 copy if there is one. */
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

/* One number for each parameter instead of two, in memory and in checkpoints. */
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

/* The update operator of every optimizer has the inputs and outputs of its row. */
static void test_rows_fit_their_operators(void **state)
{
    (void)state;
    for (int kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        struct config c = tiny_config();
        c.train.optimizer = (enum optimizer_kind)kind;
        const struct optimizer *o = optimizer_of(&c);
        assert_int_equal(op_writes(o->op), 1 + o->states);
        assert_int_equal(op_def(o->op)->least_in, 1 + o->states + 1 + o->inputs + 1);
        for (int i = 0; i < o->inputs; i++)
            assert_true(isfinite(o->input[i].at(&c.train, 0)) && o->input[i].timed > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sgd_is_its_formula),       cmocka_unit_test(test_sgd_learns),
        cmocka_unit_test(test_one_operator_updates_all), cmocka_unit_test(test_state),
        cmocka_unit_test(test_rows_fit_their_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
