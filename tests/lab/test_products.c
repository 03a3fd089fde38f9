/* One matmul in each format on the CPU: errors beside what rounding explains. */
#include "lab/products.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

static void run_sizes(int64_t m, int64_t n, int64_t k, struct products_run *ret,
                      struct products_options *o, struct arena *a)
{
    *o = (struct products_options){.device = {backend_find("cpu"), 0}, .size = {m, n, k}};
    o->samples = 1;
    o->limit_ms = 100;
    assert_int_equal(products_run(o, ret, a), ST_OK);
    assert_true(ret->results > 8 && ret->results <= PRODUCTS_MOST);
}

/* Expected errors are right to a third; kernels that add in several sums may be more precise where
 * nothing but sums rounds. */
static void test_errors(void **state)
{
    (void)state;
    static const int64_t size[][3] = {{96, 80, 512}, {33, 17, 1}, {1, 70, 1500}};
    for (int i = 0; i < COUNT_OF(size); i++) {
        struct arena a = {0};
        struct products_run r;
        struct products_options o;
        run_sizes(size[i][0], size[i][1], size[i][2], &r, &o, &a);
        assert_int_equal(r.rows, min_i64(size[i][0], PRODUCTS_SAMPLE));
        for (int k = 0; k < r.results; k++) {
            const struct products_result *x = &r.result[k];
            bool only_sums = x->kind->a == NUMBER_FP32;
            double ratio = x->error / x->expected;
            if (ratio > 1.34 || ratio < (only_sums ? 0 : 0.75))
                fail_msg("%d: row %d: error %g, expected %g", i, k, x->error, x->expected);
            assert_true(!x->kernel || x->time.total.median > 0);
        }
        arena_release(&a);
    }
}

/* The emulation of a type computes what the kernel computes. */
static void test_kernels_and_emulation(void **state)
{
    (void)state;
    struct arena a = {0};
    struct products_run r;
    struct products_options o;
    run_sizes(64, 64, 256, &r, &o, &a);
    const struct products_result *bf16 = NULL, *tf32 = NULL, *fp16 = NULL, *in_order = NULL;
    for (int k = 0; k < r.results; k++) {
        const struct products_result *x = &r.result[k];
        if (x->kind->a == NUMBER_BF16 && x->kind->result == NUMBER_FP32) bf16 = x;
        if (x->kind->a == NUMBER_TF32) tf32 = x;
        if (x->kind->a == NUMBER_FP16 && x->kind->sum == NUMBER_FP32) fp16 = x;
        if (x->kind->in_order) in_order = x->kind->a == NUMBER_FP32 ? x : in_order;
        assert_true(x->kernel == NULL || x->kind->sum == NUMBER_FP32);
    }
    assert_true(bf16 && bf16->kernel && fp16 && !fp16->kernel && tf32 && !tf32->kernel);
    assert_true(in_order && !in_order->kernel);
    /* The significands of fp16 and tf32 have as many bits, and normals fit in both. */
    assert_true(fabs(tf32->error / fp16->error - 1) < 0.05);
    arena_release(&a);
}

static void test_expected(void **state)
{
    (void)state;
    struct products_kind bf16 = {NUMBER_BF16, NUMBER_BF16, NUMBER_FP32, NUMBER_BF16, .note = NULL};
    struct products_kind narrow = {NUMBER_FP16, NUMBER_FP16, NUMBER_FP16, NUMBER_FP16,
                                   .note = NULL};
    /* bf16: u = 2^-8, three roundings; fp16: u = 2^-11, and 1024 / 2 of sums. */
    assert_true(fabs(products_expected(&bf16, 1024) / (0.4 * sqrt(3) / 256) - 1) < 1e-3);
    assert_true(fabs(products_expected(&narrow, 1024) / (0.4 * sqrt(514.5) / 2048) - 1) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_kernels_and_emulation),
        cmocka_unit_test(test_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
