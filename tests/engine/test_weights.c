/* Weights on the host, copied from and to a device whose memory the host cannot read. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "engine/weights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void open_on_null(struct tiny *t, enum model_kind kind)
{
    *t = (struct tiny){.config = tiny_config()};
    t->config.model.kind = kind;
    int64_t vocab = kind == MODEL_GPT ? TINY_VOCAB : 0;
    unsigned training = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;
    hand_ok(engine_open(&t->engine, &t->config, vocab, training, "null", &t->arena));
}

/* Every read from the null device returns zeros. */
static void test_all_parameters_are_copied(void **state)
{
    (void)state;
    struct tiny t;
    open_on_null(&t, MODEL_GPT);
    struct weights_tensor *w = weights_tensors(&t.engine, &t.arena);
    int n = t.engine.program.model.parameters;
    assert_true(n > 10);
    w[0].weight[0] = 1;
    w[n - 1].weight[w[n - 1].dim[0] - 1] = 1;
    w[n - 1].state[0].data[0] = 1;
    hand_ok(weights_fetch(&t.engine, w));
    assert_true(w[0].weight[0] == 0);
    assert_true(w[n - 1].weight[w[n - 1].dim[0] - 1] == 0);
    assert_true(w[n - 1].state[0].data[0] == 0);
    hand_ok(weights_bring(&t.engine, w));
    tiny_close(&t);
}

/* There is no first parameter, so none may be read. */
static void test_a_model_without_parameters(void **state)
{
    (void)state;
    struct tiny t;
    open_on_null(&t, MODEL_ELU);
    assert_int_equal(t.engine.program.model.parameters, 0);
    hand_ok(weights_fetch(&t.engine, NULL));
    hand_ok(weights_bring(&t.engine, NULL));
    tiny_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_parameters_are_copied),
        cmocka_unit_test(test_a_model_without_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
