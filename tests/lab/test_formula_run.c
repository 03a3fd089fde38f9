/* Formulas as graphs on the CPU: values and gradients of both variants against the formula's tree
 * in double precision, the number of fused kernels, and what a formula may not be. */
#include "lab/formula_run.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static const char *const names[] = {"x", "y", "z", "a", "b"};
static const double values[FORMULA_NAMES] = {0, 0, 0, 1.5, -0.25};
enum { NAMES = COUNT_OF(names) };

static void run_formula(const char *text, enum dtype dtype, const double *of_names, int64_t n,
                        struct formula_run *ret, struct arena *a)
{
    struct formula *f = ARENA_NEW(a, struct formula, 1);
    struct formula_options *o = ARENA_NEW(a, struct formula_options, 1);
    *o = (struct formula_options){.formula = f,
                                  .values = of_names,
                                  .device = {backend_find("cpu"), 0},
                                  .dtype = dtype,
                                  .n = n,
                                  .samples = 1,
                                  .limit_ms = 1};
    if (formula_parse(f, text, names, NAMES, a) != ST_OK) fail_msg("%s", fail_message());
    if (formula_run(o, ret, a) != ST_OK) fail_msg("%s: %s", text, fail_message());
}

static const struct {
    const char *text;
    int passes, kernels; /* of the fused variant: all passes */
} formulas[] = {
    {"x", 2, 2},
    {"a * x + y * b", 2, 2}, /* the two gradients read the same tensor */
    {"where(x < 0, a * (exp(x) - 1), x)", 2, 2},
    {"where(x > 0, log(x), 0)", 2, 2},
    {"where(x > 0, sqrt(x) + 1 / x, y)", 2, 0},
    {"where(0 >= x, b, exp(rsqrt(x)))", 2, 2},
    {"where((x > 0) * (y > 0), x * y, z)", 2, 0},
    {"min(x, y) - max(y, z) + max(log(x), a)", 2, 0},
    {"abs(x) * sigmoid(y)", 2, 2},
    {"gelu(x) + gelu_tanh(y) + silu(z)", 2, 0},
    {"relu(x) * elu(y) - tanh(z) * erf(x)", 2, 0},
    {"pow(x, 3) - pow(y, -2) + pow(abs(z), 0.5)", 2, 0},
    {"x / (1 + y * y) / a - 2 / (3 + z * z)", 2, 0},
    {"(x < y) * 2 - (x <= a)", 1, 0},
    {"x * (x > b) - (y < z) * z", 2, 0},
    {"where(a > 0, x, y) + where(b > 0, log(0 * a), x)", 2, 2},
    {"x*x*x*x*x*x*x*x + exp(x)*exp(y)*exp(z)*tanh(x)*tanh(y)*tanh(z)*erf(x)", 2, 0},
};

static void test_values_and_gradients(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DT_F32, DT_BF16};
    for (int i = 0; i < COUNT_OF(formulas); i++)
        for (int d = 0; d < COUNT_OF(dtypes); d++) {
            struct arena a = {0};
            struct formula_run r;
            run_formula(formulas[i].text, dtypes[d], values, 2000, &r, &a);
            assert_int_equal(r.passes, formulas[i].passes);
            for (int p = 0; p < r.passes; p++)
                for (int v = 0; v < FORMULA_VARIANTS; v++) {
                    const struct formula_result *x = &r.result[p][v];
                    if (x->wrong)
                        fail_msg("%s, %s: %s", formulas[i].text,
                                 formula_variant_name((enum formula_variant)v), x->wrong);
                    assert_true(x->kernels > 0 && x->moved > 0 && isfinite(x->error));
                    assert_true(x->time.total.median > 0 && r.copy[p].total.median > 0);
                    assert_true(x->moved >= r.useful[p] || p == FORMULA_BOTH);
                }
            int kernels = r.result[r.passes - 1][FORMULA_FUSED].kernels;
            if (formulas[i].kernels && dtypes[d] == DT_F32)
                if (kernels != formulas[i].kernels)
                    fail_msg("%s: %d kernels", formulas[i].text, kernels);
            assert_true(kernels <= r.result[r.passes - 1][FORMULA_SEPARATE].kernels ||
                        dtypes[d] == DT_BF16);
            assert_true(r.unjudged < 0.6);
            arena_release(&a);
        }
}

/* A finite gradient is compared also where the branch that is not taken is infinite or NaN. */
static void test_the_other_side_is_compared(void **state)
{
    (void)state;
    struct arena a = {0};
    struct formula_run r;
    run_formula("where(x > 0, log(x) + sqrt(x) + rsqrt(x) + pow(x, -2), 0)", DT_F32, values, 3000,
                &r, &a);
    assert_true(r.unjudged == 0 && !r.wrong);
    run_formula("log(x)", DT_F32, values, 3000, &r, &a);
    assert_true(r.unjudged > 0.4 && !r.wrong);
    arena_release(&a);
}

/* The bytes that must move: of the value its tensor and itself, of the gradient x, df and dx. */
static void test_useful_bytes(void **state)
{
    (void)state;
    struct arena a = {0};
    struct formula_run r;
    run_formula("exp(x) * y", DT_F32, values, 1000, &r, &a);
    assert_true(r.useful[FORMULA_FORWARD] == 12 && r.useful[FORMULA_BOTH] == 12 + 20);
    assert_true(r.result[FORMULA_BOTH][FORMULA_FUSED].moved == 32);
    run_formula("2 * x", DT_BF16, values, 1000, &r, &a);
    assert_true(r.useful[FORMULA_FORWARD] == 4 && r.useful[FORMULA_BOTH] == 8);
    arena_release(&a);
}

static void refuses(const char *text, const char *sentence, int column)
{
    struct arena a = {0};
    struct formula f;
    struct formula_uses uses;
    char caret[80];
    assert_int_equal(formula_parse(&f, text, names, NAMES, &a), ST_OK);
    assert_int_equal(formula_check(&f, values, &uses), ST_USAGE);
    if (!strstr(fail_message(), sentence)) fail_msg("%s", fail_message());
    memset(caret, ' ', sizeof caret);
    memcpy(caret + 5 + column, "^", 2);
    caret[0] = '\n';
    assert_string_equal(strrchr(fail_message(), '\n'), caret);
    arena_release(&a);
}

static void test_what_no_formula_is(void **state)
{
    (void)state;
    refuses("a * 2", "the constant 3; it must use x, y or z", 0);
    refuses("x + a / 0", "this constant is not a finite float: it is inf", 6);
    refuses("x / (a - 1.5)", "this divides by the constant 0", 2);
    refuses("pow(x, 2.5)", "the exponent of pow must be 0.5", 7);
    refuses("pow(x, 0)", "found 0", 7);
    refuses("pow(2, x)", "the exponent of pow must be a constant", 7);
    struct arena a = {0};
    struct formula f;
    struct graph g;
    struct str s = {0};
    const struct formula_shape shape = {DT_F32, 10, true, true};
    for (int i = 0; i < 30; i++) str_append(&s, "max(exp(x), ");
    str_append(&s, "x");
    for (int i = 0; i < 30; i++) str_append(&s, ")");
    assert_int_equal(formula_parse(&f, str_text(&s), names, NAMES, &a), ST_OK);
    assert_int_equal(formula_graph(&f, values, &shape, &g, &a), ST_USAGE);
    assert_string_equal(fail_message(), "the formula needs more than 1000 operators; shorten it");
    str_release(&s);
    arena_release(&a);
}

static void test_shown(void **state)
{
    (void)state;
    struct arena a = {0};
    struct str s = {0};
    struct formula f;
    assert_int_equal(formula_parse(&f, "exp(x) * a", names, NAMES, &a), ST_OK);
    const struct formula_options o = {.formula = &f,
                                      .values = values,
                                      .device = {backend_find("cpu"), 0},
                                      .dtype = DT_F32,
                                      .n = 100};
    assert_int_equal(formula_show(&o, false, &s), ST_OK);
    assert_non_null(strstr(str_text(&s), "// forward: CHAIN [steps EXP, SCALE value 1.5]"));
    assert_non_null(strstr(str_text(&s), "// backward: CHAIN"));
    assert_int_equal(formula_show(&o, true, &s), ST_UNSUPPORTED);
    str_release(&s);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_gradients),
        cmocka_unit_test(test_the_other_side_is_compared),
        cmocka_unit_test(test_useful_bytes),
        cmocka_unit_test(test_what_no_formula_is),
        cmocka_unit_test(test_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
