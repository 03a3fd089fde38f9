/* The keys of GPU matmuls in tuning tables, and which kernel a table selects. Needs no GPU. */
#include "../support/cases.h"
#include "backend/backend.h"
#include "backend/kernel.h"
#include "tuning/tuning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Adds the lookups of the matmul x (256,128) by w (512,128) with a bias of this type. */
static void ask(enum op op, enum dtype bias, struct tuning_lookups *q)
{
    struct target target;
    const struct backend *cuda = backend_find("cuda");
    union attr attr = {.linear = {.tb = true, .tanh = true}};
    struct kernel_call call = {
        .attr = &attr,
        .n_in = 3,
        .n_out = 1,
        .target = &target,
        .in_type = {type_2d(DT_BF16, 256, 128), type_2d(DT_BF16, 512, 128), type_1d(bias, 512)},
        .out_type = {type_2d(DT_BF16, 256, 512)},
        .lookups = q};
    if (!cuda) SKIP("there is no CUDA backend in this build");
    assert_int_equal(backend_target(cuda, TARGET_ANY, &target), ST_OK);
    assert_non_null(cuda->kernels.find((int)op, &call, 0));
}

/* The library needs a bf16 copy of an f32 bias, while Strobe's own kernel reads both types, so
 * calls with the two types take different times. */
static void test_type_of_the_bias(void **state)
{
    (void)state;
    static const enum op ops[] = {OP_LINEAR, OP_LINEAR_GELU};
    for (int i = 0; i < COUNT_OF(ops); i++) {
        struct arena a = {0};
        struct tuning_lookups q = {.arena = &a};
        ask(ops[i], DT_F32, &q);
        ask(ops[i], DT_BF16, &q);
        assert_int_equal(q.n, 2);
        assert_non_null(strstr(q.lookup[0].key, "-> bf16, f32 bias"));
        assert_non_null(strstr(q.lookup[1].key, "-> bf16, bf16 bias"));
        arena_release(&a);
    }
}

/* The variant of a matmul (16384,768) x (768,768) for which a table holds these times. */
static const char *variant_chosen(double library_us, double own_us)
{
    struct target target;
    struct arena a = {0};
    struct tuning table;
    struct tuning_lookups q = {.arena = &a};
    const struct backend *cuda = backend_find("cuda");
    union attr attr = {0};
    if (!cuda) SKIP("there is no CUDA backend in this build");
    assert_int_equal(backend_target(cuda, TARGET_ANY, &target), ST_OK);
    struct kernel_call call = {
        .attr = &attr,
        .n_in = 2,
        .n_out = 1,
        .target = &target,
        .in_type = {type_2d(DT_BF16, 16384, 768), type_2d(DT_BF16, 768, 768)},
        .out_type = {type_2d(DT_BF16, 16384, 768)},
        .lookups = &q};
    assert_non_null(cuda->kernels.find(OP_MATMUL, &call, 0));
    assert_int_equal(q.n, 1);
    struct tuning_entry e = {
        .n = 2, .candidate = {{"cublaslt", .us = library_us}, {"wgmma", .us = own_us}}};
    memcpy(e.key, q.lookup[0].key, sizeof e.key);
    memcpy(e.candidate[1].launch, q.lookup[0].launch, sizeof e.candidate[1].launch);
    tuning_init(&table, &target, &a);
    tuning_set(&table, &e);
    call.tuning = &table;
    call.lookups = NULL;
    const char *variant = cuda->kernels.find(OP_MATMUL, &call, 0)->variant;
    arena_release(&a);
    return variant;
}

static void test_ties_go_to_the_library(void **state)
{
    (void)state;
    assert_string_equal(variant_chosen(100, 90), "wgmma");
    assert_string_equal(variant_chosen(100, 98.9), "wgmma");
    assert_string_equal(variant_chosen(100, 99.5), "cublaslt");
    assert_string_equal(variant_chosen(100, 110), "cublaslt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_type_of_the_bias),
        cmocka_unit_test(test_ties_go_to_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
