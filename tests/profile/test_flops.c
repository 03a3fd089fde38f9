/* The FLOPs of a GPT-2 step equal a closed formula of its sizes exactly. */
#include "../support/hand.h"
#include "base/threads.h"
#include "engine/tune.h"
#include "profile/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { VOCABULARY = 50257 };

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static void plan(struct program *p, struct config *c, const char *const *words)
{
    config_init(c);
    config_choose(c, &(struct config_facts){0});
    hand_ok(config_read(c, "configs/gpt2_124m.conf", &arena));
    hand_ok(config_set(c, "gradient_accumulation_steps=1", &arena));
    for (; *words; words++) hand_ok(config_set(c, *words, &arena));
    threads_set(1);
    hand_ok(program_for(p, c, VOCABULARY, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE, "cpu", &arena));
}

/* The FLOPs that the plans count for these families (a mask). */
static double counted(const struct program *program, unsigned families)
{
    static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_UPDATE};
    double flops = 0;
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        const struct plan *p = &program->plan[kinds[k]];
        for (int id = 0; id < p->steps; id++)
            if (p->step[id].kernel && families >> family_of(&p->graph->node[id], false) & 1)
                flops += p->step[id].cost.flops;
    }
    return flops;
}

/* B sequences of T tokens, N in all; L blocks of C columns and H heads; V vocabulary entries. */
struct sizes {
    double B, T, N, L, C, H, V;
};

static struct sizes sizes_of(const struct config *c)
{
    double B = (double)c->data.batch_size, T = (double)c->model.block_size;
    return (struct sizes){B,
                          T,
                          B * T,
                          (double)c->model.n_layer,
                          (double)c->model.n_embd,
                          (double)c->model.n_head,
                          VOCABULARY};
}

/* A matmul of M x N x K has 2 M N K FLOPs. Weights: 3 C^2 for q, k, v, C^2 for the projection, 8
 * C^2 for the MLP, and the head; each once forward and twice backward, for the gradients of its
 * input and of the weight. */
static double matmul_flops(const struct sizes *s)
{
    return 3 * 2 * s->N * (12 * s->C * s->C * s->L + s->V * s->C);
}

/* Scores and weighted sum, whole matrices: 2 T^2 C each forward, twice as much backward. */
static double slow_matmul_flops(const struct sizes *s)
{
    return 3 * 2 * 2 * s->B * s->T * s->T * s->C * s->L;
}

/* Per unmasked pair: two matmuls and the softmax forward; five and its gradient backward. */
static double flash_flops(const struct sizes *s)
{
    double pairs = s->B * s->T * (s->T + 1) / 2;
    return pairs * s->L * (4 * s->C + 5 * s->H + 10 * s->C + 7 * s->H);
}

static double parameters(const struct sizes *s)
{
    return s->V * s->C + s->T * s->C + s->L * (12 * s->C * s->C + 2 * s->C) + s->C;
}

/* Everything except matmuls and attention, with fusion=op: an operator of a layer is one node. */
static double other_flops(const struct sizes *s)
{
    double row = s->N * s->C, norms = 2 * s->L + 1;
    double forward = row                               /* tokens + positions */
                     + norms * 8 * row                 /* norms */
                     + s->L * (2 * row + 10 * 4 * row) /* residual sums, GELU */
                     + 5 * s->N * s->V;                /* softmax of the loss */
    double backward = 5 * s->N * s->V + norms * 16 * row +
                      s->L * (10 * 4 * row)     /* their gradients */
                      + s->L * 2 * row          /* branches of the residual stream */
                      + row + s->T * s->C + row /* positions, both tables */
                      + s->V * s->C;            /* the tied table has two gradients */
    double tensors = s->L * 6 + 3;
    double clip = 1 + 1 + 1 + 1; /* square root, + epsilon, division, at most 1 */
    double update = 2 * parameters(s) + (tensors - 1) + clip + 14 * parameters(s);
    return forward + backward + update;
}

static void test_step_matches_the_formula(void **state)
{
    (void)state;
    struct program p;
    struct config c;
    plan(&p, &c, (const char *[]){"fusion=op", "flash=true", "dtype=float32", NULL});
    struct sizes s = sizes_of(&c);
    assert_true(counted(&p, 1u << FAMILY_MATMUL) == matmul_flops(&s));
    assert_true(counted(&p, 1u << FAMILY_ATTENTION) == flash_flops(&s));
    double all = counted(&p, ~0u), formula = matmul_flops(&s) + flash_flops(&s) + other_flops(&s);
    if (all != formula)
        fail_msg("%.0f counted, %.0f by the formula: %.0f", all, formula, all - formula);
}

/* Savings of fusion: logits are normalized once for the loss and its gradient; GELU also returns
 * its derivative, so its gradient is one multiplication; sums of squares of single tensors need not
 * be added. */
static double fused_away(const struct sizes *s)
{
    return 5 * s->N * s->V + s->L * (10 - 1) * 4 * s->N * s->C + s->L * 6 + 3 - 1;
}

static void test_fused_step_matches_the_formula(void **state)
{
    (void)state;
    struct program p;
    struct config c;
    plan(&p, &c, (const char *[]){"fusion=full", "flash=true", "dtype=float32", NULL});
    struct sizes s = sizes_of(&c);
    double all = counted(&p, ~0u);
    double formula = matmul_flops(&s) + flash_flops(&s) + other_flops(&s) - fused_away(&s);
    if (all != formula)
        fail_msg("%.0f counted, %.0f by the formula: %.0f", all, formula, all - formula);
}

static void test_slow_attention_counts_its_matmuls(void **state)
{
    (void)state;
    struct program p;
    struct config c;
    plan(&p, &c, (const char *[]){"fusion=full", "flash=false", "dtype=float32", NULL});
    struct sizes s = sizes_of(&c);
    assert_true(counted(&p, 1u << FAMILY_MATMUL) == matmul_flops(&s) + slow_matmul_flops(&s));
    assert_true(counted(&p, 1u << FAMILY_ATTENTION) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_step_matches_the_formula, release),
        cmocka_unit_test_teardown(test_fused_step_matches_the_formula, release),
        cmocka_unit_test_teardown(test_slow_attention_counts_its_matmuls, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
