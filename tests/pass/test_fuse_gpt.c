/* The pass `fuse` on a GPT: which patterns are fused, and that results do not change. */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "pass/pass.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { L = 2 };

struct expected {
    enum op op;
    int count;
};

static void count_all(const struct graph *g, int n, const struct expected *e)
{
    for (int i = 0; i < n; i++) {
        int count = hand_count(g, e[i].op);
        if (count != e[i].count)
            fail_msg("%s: %d instead of %d", op_def(e[i].op)->name, count, e[i].count);
    }
}

static void check_counts(const struct config *c)
{
    struct arena a = {0};
    struct model m;
    struct graph g;
    bool drop = c->model.dropout > 0, slow = !c->plan.flash;
    model_init(&m, &c->model, TINY_VOCAB, 1, &a);
    hand_ok(program_graph(GRAPH_MICRO, c, &m, NULL, NULL, NULL, &g, &a));
    const struct expected micro[] = {
        {OP_EMBED_SUM, 1},
        {OP_ADD_LAYERNORM, 2 * L},
        {OP_LAYERNORM, 1}, /* the first norm, of the embedding */
        {OP_LAYERNORM_GRAD_ADD, 2 * L},
        {OP_LAYERNORM_GRAD, 1}, /* the last norm, which has no residual branch */
        {OP_SCORE_SOFTMAX, slow ? L : 0},
        {OP_SCORE_SOFTMAX_GRAD, slow ? L : 0},
        {OP_CROSS_ENTROPY_BOTH, 1},
        {OP_CROSS_ENTROPY, 0},
        {OP_SOFTMAX, 0},
        {OP_CAUSAL_MASK, 0},
        {OP_DROPOUT, drop ? 2 * L + 1 : 0}, /* gradients of the branches and of the embedding */
        {OP_EMBED_GRAD_ADD, 1},             /* added to the gradient of the tied output head */
        {OP_EMBED_GRAD_SUM, 1},             /* gradient of the position table */
        {OP_EMBED_GRAD, 0},
        {OP_ADD, 0},
        {OP_EMBED, 0},
    };
    count_all(&g, COUNT_OF(micro), micro);
    hand_ok(program_graph(GRAPH_UPDATE, c, &m, NULL, NULL, NULL, &g, &a));
    const struct expected update[] = {{OP_SUM_SQUARES, 1}, {OP_ADAMW, 1}, {OP_ADD, 0}};
    count_all(&g, COUNT_OF(update), update);
    hand_ok(program_graph(GRAPH_EVAL, c, &m, NULL, NULL, NULL, &g, &a));
    const struct expected eval[] = {{OP_EMBED_SUM, 1},
                                    {OP_ADD_LAYERNORM, 2 * L},
                                    {OP_SCORE_SOFTMAX, slow ? L : 0},
                                    {OP_CROSS_ENTROPY, 1},
                                    {OP_CROSS_ENTROPY_BOTH, 0}};
    count_all(&g, COUNT_OF(eval), eval);
    arena_release(&a);
}

/* Loss, gradients and updated weights of one step. */
struct numbers {
    float loss, norm, *gradients, *weights;
};

static struct numbers numbers_at(struct config c, enum fusion fusion, struct arena *a)
{
    struct tiny t;
    c.plan.fusion = fusion;
    tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    struct numbers n = {.loss = tiny_loss(&t, GRAPH_MICRO, 3)};
    n.gradients = tiny_copy(&t, STORAGE_GRADIENTS, a);
    n.norm = tiny_update(&t, 1, 1e-3);
    n.weights = tiny_copy(&t, STORAGE_WEIGHTS, a);
    tiny_close(&t);
    return n;
}

static void check_numbers(const struct config *c)
{
    struct arena a = {0};
    struct model m;
    model_init(&m, &c->model, TINY_VOCAB, 1, &a);
    struct numbers op = numbers_at(*c, FUSION_OP, &a), full = numbers_at(*c, FUSION_FULL, &a);
    assert_true(isfinite(op.loss) && op.loss > 1);
    assert_float_equal(full.loss / op.loss, 1, 1e-6);
    assert_float_equal(full.norm / op.norm, 1, 1e-6);
    for (int i = 0; i < m.parameters; i++) {
        const struct parameter *p = &m.parameter[i];
        int64_t n = type_elements(&p->type), at = p->offset;
        double apart = hand_distance(full.gradients + at, op.gradients + at, n);
        if (!(apart < 1e-6)) fail_msg("gradient of %s differs by %.2e", p->name, apart);
        /* Adam's first step divides a gradient by its magnitude. If a gradient is only rounding
         * error (the bias of keys), the quotient is arbitrary, so weights may differ by a fraction
         * of the learning rate. */
        for (int64_t k = 0; k < n; k++)
            assert_float_equal(full.weights[at + k], op.weights[at + k], 2e-3);
    }
    arena_release(&a);
}

static void test_small_gpt(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++) {
        struct config c = tiny_config();
        c.model.bias = bits & 1;
        c.model.dropout = bits & 2 ? 0.2 : 0;
        c.plan.flash = bits & 4;
        c.model.pad_vocab = bits & 8 ? 64 : 0;
        c.model.gelu = bits & 1 ? GELU_ERF : GELU_TANH;
        check_counts(&c);
        check_numbers(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small_gpt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
