/* Recomputation does not change results: losses, gradients and weights are bitwise the same whether
 * values are kept or recomputed.
 * test: release; it compares bits of whole steps, which test_train.sh runs with sanitizers */
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/isa.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 3, MICRO = 2 };

struct result {
    float loss[STEPS * MICRO], norm[STEPS];
    float *gradients, *weights; /* after the last step */
    int64_t elements, arena_bytes;
};

/* Steps of two micro-batches each. */
static struct result train(struct config c, enum recompute recompute, struct arena *a)
{
    struct tiny t;
    struct result r = {0};
    c.plan.recompute = recompute;
    c.train.gradient_accumulation_steps = MICRO;
    tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_MICRO_MORE | 1u << GRAPH_UPDATE);
    for (int i = 0; i < STEPS; i++) {
        r.loss[i * MICRO] = tiny_loss(&t, GRAPH_MICRO, i * MICRO);
        r.loss[i * MICRO + 1] = tiny_loss(&t, GRAPH_MICRO_MORE, i * MICRO + 1);
        if (i == STEPS - 1) r.gradients = tiny_copy(&t, STORAGE_GRADIENTS, a);
        r.norm[i] = tiny_update(&t, i + 1, 1e-2);
    }
    r.weights = tiny_copy(&t, STORAGE_WEIGHTS, a);
    r.elements = t.engine.program.model.elements;
    r.arena_bytes = t.engine.program.plan[GRAPH_MICRO_MORE].arena_bytes;
    tiny_close(&t);
    return r;
}

static const char *difference(const struct result *x, const struct result *y)
{
    size_t bytes = (size_t)x->elements * sizeof(float);
    return memcmp(x->loss, y->loss, sizeof x->loss)    ? "losses"
           : memcmp(x->gradients, y->gradients, bytes) ? "gradients"
           : memcmp(x->norm, y->norm, sizeof x->norm)  ? "norms of gradients"
           : memcmp(x->weights, y->weights, bytes)     ? "weights"
                                                       : NULL;
}

/* "block": regions of one block; "block:2": two blocks and one; "block:3": all three. */
static const char *const names[] = {"none", "gelu", "block", "block:2", "block:3"};

static void check(const struct config *c)
{
    struct arena a = {0};
    struct result kept = train(*c, RECOMPUTE_NONE, &a);
    assert_true(isfinite(kept.loss[STEPS * MICRO - 1]) && kept.norm[STEPS - 1] > 0);
    int64_t bytes = kept.arena_bytes;
    for (int i = RECOMPUTE_GELU; i < COUNT_OF(names); i++) {
        struct result r = train(*c, (enum recompute)i, &a);
        const char *other = difference(&r, &kept);
        if (other)
            fail_msg("recompute=%s, fusion %d, flash %d, dtype %d, dropout %g: other %s", names[i],
                     c->plan.fusion, c->plan.flash, c->plan.dtype, c->model.dropout, other);
        if (i > RECOMPUTE_BLOCK) continue; /* with three blocks, larger regions save no memory */
        if (c->plan.reuse && r.arena_bytes > bytes)
            fail_msg("recompute=%s, fusion %d, flash %d, dtype %d: %lld bytes after %lld", names[i],
                     c->plan.fusion, c->plan.flash, c->plan.dtype, (long long)r.arena_bytes,
                     (long long)bytes);
        bytes = r.arena_bytes;
    }
    arena_release(&a);
}

static struct config deep_config(void)
{
    struct config c = tiny_config();
    c.model.n_layer = 3; /* first, middle and last */
    c.model.bias = true;
    return c;
}

/* Every rung, with and without its optional parts. */
static void check_rungs(struct config c)
{
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int bits = 0; bits < 4; bits++) {
            c.plan.fusion = (enum fusion)fusion;
            c.plan.flash = bits & 1;
            c.model.dropout = bits & 2 ? 0.2 : 0;
            check(&c);
        }
}

static void test_fp32(void **state)
{
    (void)state;
    struct config c = deep_config();
    check_rungs(c);
    c.model.gelu = GELU_TANH;
    c.model.bias = false;
    check_rungs(c);
}

static void test_bf16(void **state)
{
    (void)state;
    struct config c = deep_config();
    c.plan.dtype = PRECISION_BFLOAT16;
    check_rungs(c);
    c.model.gelu = GELU_TANH;
    c.model.bias = false;
    check_rungs(c);
}

static void test_packed_weights(void **state)
{
    (void)state;
    tiny_need_packing(PRECISION_FLOAT32);
    struct config c = deep_config();
    c.plan.pack_weights = PACKING_TRUE;
    c.model.dropout = 0.2;
    check(&c);
    c.plan.dtype = PRECISION_BFLOAT16;
    if (tiny_packs(c.plan.dtype)) check(&c);
}

/* Results do not depend on the contents of dead values. */
static void test_poison(void **state)
{
    (void)state;
    struct config c = deep_config();
    c.plan.poison = true;
    check_rungs(c);
    c.plan.reuse = false;
    check_rungs(c);
}

/* Without the matmul library. */
static void test_own_kernels(void **state)
{
    (void)state;
    struct config c = deep_config();
    c.plan.isa = ISA_PLAIN;
    c.model.dropout = 0.2;
    for (int bits = 0; bits < 4; bits++) {
        c.plan.flash = bits & 1;
        c.plan.dtype = bits & 2 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
        check(&c);
    }
    assert_int_equal(isa_limit(ISA_AUTO), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32),           cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_packed_weights), cmocka_unit_test(test_poison),
        cmocka_unit_test(test_own_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
