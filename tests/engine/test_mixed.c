/* Training in mixed precision and with packed weights: close to fp32 at every rung, the same with
 * and without packed copies, bitwise repeatable. */
#include "../support/hand.h"
#include "../support/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 30 };

static void train(const struct config *c, float *ret_loss)
{
    struct tiny t;
    tiny_open(&t, c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    for (int i = 0; i < STEPS; i++) ret_loss[i] = tiny_step(&t, i, 1e-3);
    tiny_close(&t);
}

static double furthest(const float *a, const float *b)
{
    double most = 0;
    for (int i = 0; i < STEPS; i++) most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* bf16 has 8 bits of precision: one rounding changes a loss near 3.6 by less than 0.01, and thirty
 * steps do not diverge. */
static void test_bf16_is_close_to_fp32(void **state)
{
    (void)state;
    float exact[STEPS], loss[STEPS];
    struct config c = tiny_config();
    train(&c, exact);
    assert_true(exact[0] - exact[STEPS - 1] > 0.2f); /* the model learns */
    c.plan.dtype = PRECISION_BFLOAT16;
    for (int fusion = FUSION_PRIMITIVE; fusion <= FUSION_FULL; fusion++)
        for (int flash = 0; flash < 2; flash++) {
            c.plan.fusion = (enum fusion)fusion;
            c.plan.flash = flash;
            train(&c, loss);
            double off = furthest(loss, exact);
            if (off > 0.01) fail_msg("fusion %d, flash %d: off by %.4f", fusion, flash, off);
            assert_true(off > 0); /* bf16 is really used */
        }
}

/* The memory layout of a weight can only change the order of sums. */
static void test_packed_is_the_same(void **state)
{
    (void)state;
    float plain[STEPS], packed[STEPS];
    tiny_need_packing(PRECISION_FLOAT32);
    for (int bf16 = 0; bf16 <= tiny_packs(PRECISION_BFLOAT16); bf16++)
        for (int bias = 0; bias < 2; bias++) {
            struct config c = tiny_config();
            c.model.bias = bias;
            c.plan.dtype = bf16 ? PRECISION_BFLOAT16 : PRECISION_FLOAT32;
            c.plan.pack_weights = PACKING_FALSE;
            train(&c, plain);
            c.plan.pack_weights = PACKING_TRUE;
            train(&c, packed);
            double off = furthest(plain, packed);
            if (off > (bf16 ? 5e-3 : 1e-5)) fail_msg("bf16 %d: off by %.2e", bf16, off);
        }
}

static void test_runs_are_repeatable(void **state)
{
    (void)state;
    float a[STEPS], b[STEPS];
    struct config c = tiny_config();
    c.model.dropout = 0.2;
    c.plan.dtype = PRECISION_BFLOAT16;
    c.plan.pack_weights = tiny_packs(PRECISION_BFLOAT16) ? PACKING_TRUE : PACKING_AUTO;
    train(&c, a);
    train(&c, b);
    assert_memory_equal(a, b, sizeof a);
}

/* The copy equals the rounded weights, after initialization and after updates. */
static void test_copy_follows_the_weights(void **state)
{
    (void)state;
    struct config c = tiny_config();
    struct tiny t;
    c.plan.dtype = PRECISION_BFLOAT16;
    tiny_open(&t, &c, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    for (int step = 0; step < 3; step++) {
        const float *w = tiny_range(&t, STORAGE_WEIGHTS);
        const uint16_t *copy = t.engine.storage.base[STORAGE_COPY];
        for (int64_t i = 0; i < t.engine.program.model.elements; i++) {
            uint32_t bits = (uint32_t)copy[i] << 16;
            float narrow;
            memcpy(&narrow, &bits, sizeof narrow);
            if (fabsf(narrow - w[i]) > fabsf(w[i]) / 256)
                fail_msg("step %d, element %lld: %g of %g", step, (long long)i, (double)narrow,
                         (double)w[i]);
        }
        tiny_step(&t, step, 1e-2);
    }
    tiny_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bf16_is_close_to_fp32),
        cmocka_unit_test(test_packed_is_the_same),
        cmocka_unit_test(test_runs_are_repeatable),
        cmocka_unit_test(test_copy_follows_the_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
