/* The parameters of a kernel are read from its source, and arguments are matched with them by name
 * and type: each kind of mistake is a failure that names source, entry and parameter. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/signature.h"

static const char text[] =
    "#include \"device.cuh\"\n"
    "#define PACKED 1\n"
    "/* first (x, y) is never called. */\n"
    "DEVICE void first_of(int first) { first(first); }\n"
    "KERNEL_MIN(THREADS, (2 * 1)) first(const float *x, T_X *__restrict__ y, /* n, or */ int "
    "rows,\n"
    "      u32 seed, i64 n, float scale, const __grid_constant__ tensor_map map)\n"
    "{\n"
    "}\n"
    "#define EACH(entry, expression) \\\n"
    "    struct of_##entry {};       \\\n"
    "    KERNEL(256) entry(const T_X *x, \\\n"
    "                      T_X *y, i64 n) {}\n"
    "EACH(each_exp, exp(x))\n"
    "KERNEL(32) optional(float *y,\n"
    "#if BIAS\n"
    "    const float *bias,\n"
    "#else\n"
    "    float constant,\n"
    "#endif\n"
    "#if !PACKED\n"
    "    float *second,\n"
    "#endif\n"
    "    int n) {}\n"
    "KERNEL(1) none() {}\n"
    "KERNEL(1) of_double(double x) {}\n"
    "KERNEL(1) of_const(const int n) {}\n"
    "KERNEL(1) of_pairs(float **x) {}\n"
    "KERNEL(1) nameless(float *) {}\n"
    "KERNEL(1) undefined(int a,\n#if UNKNOWN\nint b\n#endif\n) {}\n"
    "KERNEL(1) conditions(int a,\n#if BIAS > 1\nint b\n#endif\n) {}\n"
    "KERNEL(1) endless(int a,";

static struct cuda_launch launch(const char *entry)
{
    struct cuda_launch k = {.text = "some.cu", .entry = entry};
    return k;
}

static struct signature read(const char *entry, const char *options)
{
    struct cuda_launch k = launch(entry);
    struct signature s;
    snprintf(k.options, sizeof k.options, "%s", options);
    if (signature_read(&k, text, &s) != ST_OK) fail_msg("%s", fail_message());
    return s;
}

static void assert_parameter(const struct signature *s, int i, enum parameter_kind kind,
                             const char *name)
{
    assert_true(i < s->parameters);
    assert_int_equal(s->parameter[i].kind, kind);
    assert_string_equal(s->parameter[i].name, name);
}

static void test_kinds(void **state)
{
    (void)state;
    struct signature s = read("first", "");
    assert_int_equal(s.parameters, 7);
    assert_parameter(&s, 0, PARAMETER_CONST_POINTER, "x");
    assert_parameter(&s, 1, PARAMETER_POINTER, "y");
    assert_parameter(&s, 2, PARAMETER_I32, "rows");
    assert_parameter(&s, 3, PARAMETER_U32, "seed");
    assert_parameter(&s, 4, PARAMETER_I64, "n");
    assert_parameter(&s, 5, PARAMETER_F32, "scale");
    assert_parameter(&s, 6, PARAMETER_TENSOR_MAP, "map");
    s = read("none", "");
    assert_int_equal(s.parameters, 0);
}

static void test_kernels_declared_by_macros(void **state)
{
    (void)state;
    struct signature s = read("each_exp", "");
    assert_int_equal(s.parameters, 3);
    assert_parameter(&s, 1, PARAMETER_POINTER, "y");
    assert_parameter(&s, 2, PARAMETER_I64, "n");
}

/* norm_parts.cuh declares the kernel; the source that includes it defines BIAS. */
static void test_included_kernels(void **state)
{
    (void)state;
    static const char including[] = "#include \"norm_parts.cuh\"\n#define BIAS 1\n";
    struct cuda_launch k = launch("norm_parts");
    struct signature s;
    assert_int_equal(signature_read(&k, including, &s), ST_OK);
    assert_parameter(&s, 1, PARAMETER_POINTER, "dbias");
}

static void test_conditions(void **state)
{
    (void)state;
    struct signature s = read("optional", "-DT_X=float -DBIAS=1");
    assert_int_equal(s.parameters, 3);
    assert_parameter(&s, 1, PARAMETER_CONST_POINTER, "bias");
    s = read("optional", "-DBIAS=0 -DPACKED=0");
    assert_int_equal(s.parameters, 4);
    assert_parameter(&s, 1, PARAMETER_F32, "constant");
    assert_parameter(&s, 2, PARAMETER_POINTER, "second");
}

static void refuse_read(const char *entry, const char *words)
{
    struct cuda_launch k = launch(entry);
    struct signature s;
    assert_int_equal(signature_read(&k, text, &s), ST_FORMAT);
    if (!strstr(fail_message(), words) || !strstr(fail_message(), "some.cu") ||
        !strstr(fail_message(), entry))
        fail_msg("%s: %s", words, fail_message());
}

static void test_invalid_sources(void **state)
{
    (void)state;
    refuse_read("absent", "declares no kernel");
    refuse_read("expression", "declares no kernel");
    refuse_read("of_double", "parameter 1");
    refuse_read("of_const", "parameter 1");
    refuse_read("of_pairs", "parameter 1");
    refuse_read("nameless", "parameter 1");
    refuse_read("undefined", "UNKNOWN");
    refuse_read("conditions", "#if BIAS > 1");
    refuse_read("endless", "no end");
}

/* Arguments of `first`, in another order, without those that `left_out` marks. */
enum { X, Y, ROWS, SEED, N, SCALE, MAP, KINDS };
static struct cuda_launch arguments(const bool *left_out)
{
    static const struct cuda_tensor tensor;
    struct cuda_launch k = launch("first");
    if (!left_out[MAP]) arg_tensor_map(&k, "map", ARG_IN, 1, &tensor);
    if (!left_out[SCALE]) arg_f32(&k, "scale", 0.5);
    if (!left_out[N]) arg_i64(&k, "n", (int64_t)1 << 40);
    if (!left_out[SEED]) arg_u32(&k, "seed", UINT32_MAX);
    if (!left_out[ROWS]) arg_i32(&k, "rows", -7);
    if (!left_out[Y]) arg_out(&k, "y", 3);
    if (!left_out[X]) arg_in(&k, "x", 2);
    return k;
}

static void test_order_is_that_of_the_source(void **state)
{
    (void)state;
    struct signature s = read("first", "");
    struct cuda_launch k = arguments((bool[KINDS]){0});
    assert_int_equal(signature_match(&s, &k), ST_OK);
    assert_int_equal(k.arg[X].kind, ARG_IN);
    assert_int_equal(k.arg[X].index, 2);
    assert_int_equal(k.arg[Y].index, 3);
    assert_int_equal(k.arg[ROWS].number.i32, -7);
    assert_int_equal(k.arg[SEED].number.u32, UINT32_MAX);
    assert_int_equal(k.arg[N].number.i64, (int64_t)1 << 40);
    assert_true(k.arg[SCALE].number.f32 == 0.5f);
    assert_int_equal(k.arg[MAP].kind, ARG_TENSOR_MAP);
}

static void refuse_match(struct cuda_launch *k, const char *parameter, const char *words)
{
    struct signature s = read("first", "");
    assert_int_equal(signature_match(&s, k), ST_FORMAT);
    if (!strstr(fail_message(), parameter) || !strstr(fail_message(), words) ||
        !strstr(fail_message(), "some.cu") || !strstr(fail_message(), "first"))
        fail_msg("%s, %s: %s", parameter, words, fail_message());
}

static void test_missing_arguments(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y", "rows", "seed", "n", "scale", "map"};
    for (int i = 0; i < KINDS; i++) {
        bool left_out[KINDS] = {0};
        left_out[i] = true;
        struct cuda_launch k = arguments(left_out);
        char parameter[32];
        snprintf(parameter, sizeof parameter, "parameter %s ", names[i]);
        refuse_match(&k, parameter, "has no argument");
    }
}

static void test_unknown_and_doubled_arguments(void **state)
{
    (void)state;
    struct cuda_launch k = arguments((bool[KINDS]){0});
    arg_i32(&k, "columns", 1);
    refuse_match(&k, "columns", "has no parameter");
    k = arguments((bool[KINDS]){0});
    arg_i32(&k, "rows", 1);
    refuse_match(&k, "parameter rows ", "two arguments");
}

static void test_wrong_types(void **state)
{
    (void)state;
    struct cuda_launch k = arguments((bool[KINDS]){[ROWS] = true});
    arg_i64(&k, "rows", 1);
    refuse_match(&k, "parameter rows ", "is an int, its argument an i64");
    k = arguments((bool[KINDS]){[ROWS] = true});
    arg_u32(&k, "rows", 1);
    refuse_match(&k, "parameter rows ", "is an int, its argument a u32");
    k = arguments((bool[KINDS]){[SCALE] = true});
    arg_i32(&k, "scale", 1);
    refuse_match(&k, "parameter scale ", "is a float, its argument an int");
    k = arguments((bool[KINDS]){[SCALE] = true});
    arg_null(&k, "scale");
    refuse_match(&k, "parameter scale ", "is a float, its argument a null pointer");
    k = arguments((bool[KINDS]){[MAP] = true});
    arg_in(&k, "map", 0);
    refuse_match(&k, "parameter map ", "is a tensor map, its argument an input");
    k = arguments((bool[KINDS]){[Y] = true});
    arg_in(&k, "y", 0);
    refuse_match(&k, "parameter y ", "is a pointer, its argument an input");
}

static void test_inputs_missing_from_the_call(void **state)
{
    (void)state;
    struct kernel_call c = {.n_in = 1, .n_out = 1};
    struct cuda_launch k = {.text = "rope_table.cu", .entry = "rope_table"};
    arg_out(&k, "table", 0);
    arg_in(&k, "position", 0);
    arg_i64(&k, "pairs", 1);
    arg_i32(&k, "D", 2);
    assert_int_equal(launch_match_arguments(&c, &k), ST_OK);
    k.arg[1].index = 1;
    assert_int_equal(launch_match_arguments(&c, &k), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "position"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_kernels_declared_by_macros),
        cmocka_unit_test(test_included_kernels),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_invalid_sources),
        cmocka_unit_test(test_order_is_that_of_the_source),
        cmocka_unit_test(test_missing_arguments),
        cmocka_unit_test(test_unknown_and_doubled_arguments),
        cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_inputs_missing_from_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    print_message("skipped: built without the CUDA toolkit's headers\n");
    return 0;
}
#endif
