/* Every kernel of the GPU's table is compiled, without a GPU: for all cases of `strobe check`, for compute capability 8.0
 * and 9.0, or the one that they are for. Rows spill no registers unless they say so, and products of warpgroups are
 * compiled as they are written. */
#include "backend/backend.h"
#include "base/arena.h"
#include "base/str.h"
#include "graph/graph.h"
#include "measure/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/jit.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/product.h"

enum { MODULES = 4096 };

static struct module {
    char text[64], options[LAUNCH_OPTIONS], entry[64];
    char *source; /* NULL: it is built in */
    bool spills;
    int arch; /* 0: for each */
} module[MODULES];
static int modules, written;

/* What a launch writes for the call; NULL: its text is built in. */
static char *source_of(const struct cuda_launch *k, const struct kernel_call *call)
{
    struct str s = {0};
    if (!k->write) return NULL;
    k->write(call, &s);
    char *source = strdup(str_text(&s));
    str_release(&s);
    return source;
}

static bool same_source(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void note(const struct cuda_launch *k, const struct kernel_call *call)
{
    if (!k->text) return;
    char *source = source_of(k, call);
    for (int i = 0; i < modules; i++)
        if (!strcmp(module[i].text, k->text) && !strcmp(module[i].options, k->options) &&
            same_source(module[i].source, source)) {
            module[i].spills |= k->spills;
            free(source);
            return;
        }
    assert_true(modules < MODULES);
    struct module *m = &module[modules++];
    m->source = source;
    written += source != NULL;
    snprintf(m->text, sizeof m->text, "%s", k->text);
    snprintf(m->options, sizeof m->options, "%s", k->options);
    m->spills = k->spills;
    m->arch = k->arch;
}

static void note_launches(const struct cuda_row *row, const struct kernel_call *call)
{
    struct cuda_launches l = {.device = cuda_device_of(call)};
    row->launches(call, &l);
    for (int i = 0; i < l.n; i++) note(&l.launch[i], call);
}

/* A product by the library is no launch; there may be some before and after it. */
static void note_beside(const struct cuda_row *rows, const struct kernel_call *call, int op)
{
    for (const struct cuda_row *row = rows; row->kernel.run; row++)
        if ((int)row->kernel.op == op) note_launches(row, call);
}

static void note_rows(const struct backend *cuda, const struct kernel_call *call, int op)
{
    const struct kernel *k;
    for (int n = 0; (k = cuda->kernel(op, call, n)); n++) {
        if (k->prepare == cuda_prepare) {
            note_launches((const struct cuda_row *)k, call);
            continue;
        }
        note_beside(product_before, call, op);
        note_beside(product_after, call, op);
    }
}

/* What is planned for where there is no GPU; the texts are compiled for others, too. */
static const struct target *h200(void)
{
    static struct target target;
    if (!target.backend)
        assert_int_equal(backend_target(backend_find("cuda"), TARGET_ANY, &target), ST_OK);
    return &target;
}

static void note_case(const struct op_case *c, enum dtype dtype)
{
    struct node node;
    struct kernel_call call = {.attr = &node.attr, .target = h200()};
    if (case_node(c, dtype, &node, call.in_type, call.out_type) != ST_OK) return;
    call.n_in = node.n_in;
    call.n_out = node.n_out;
    note_rows(backend_find("cuda"), &call, (int)node.op);
}

/* Of so many tiles as a step has, where no case has, the widest are chosen, and these have the most registers. */
#define MATRIX(...) .type = {DT_F32, 2, {__VA_ARGS__}}
static const struct op_case large[] = {
    {OP_LINEAR_GELU, .attr.linear = {.keep = true},
     .in = {{MATRIX(16384, 768)},
            {MATRIX(768, 3072)},
            {.type = {DT_F32, 1, {3072}}, .wide = true}}},
    {OP_LINEAR_GELU, .attr.linear = {.keep = true, .tanh = true},
     .in = {{MATRIX(16384, 768)}, {MATRIX(768, 3072)}, {.type = {DT_F32, 1, {3072}}}}},
    {OP_MATMUL_GELU_GRAD, .attr.matmul = {.tb = true},
     .in = {{MATRIX(16384, 768)}, {MATRIX(3072, 768)}, {MATRIX(16384, 3072)}}},
    {OP_MATMUL_GELU_GRAD, .attr.matmul = {.tb = true, .tanh = true},
     .in = {{MATRIX(16384, 768)}, {MATRIX(3072, 768)}, {MATRIX(16384, 3072)}}},
};

static void note_cases(void)
{
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) note_case(c, DT_F32), note_case(c, DT_BF16);
    for (int i = 0; i < COUNT_OF(large); i++) note_case(&large[i], DT_BF16);
}

/* "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" of every kernel of a module. */
static bool has_spills(const char *log)
{
    for (const char *at = log; (at = strstr(at, " bytes spill stores")); at++) {
        const char *number = at;
        while (number > log && number[-1] >= '0' && number[-1] <= '9') number--;
        if (atoi(number) > 0) return true;
    }
    return false;
}

/* The compiler numbers its remarks about products of warpgroups and registers given up: 7503 ... 7520. All say that the
 * text does not do what it was written for (products one after the other, registers not moved). */
static bool has_remarks(const char *log)
{
    return strstr(log, "(C75") != NULL;
}

static const char *compile(const struct module *m, const char *arch)
{
    char *image, *log, word[16];
    int64_t bytes;
    jit_arch_word(m->arch, word);
    if (m->arch && strcmp(word, arch)) return NULL;
    if (jit_compile(m->text, m->source, m->options, arch, &image, &bytes, &log) != ST_OK)
        return strdup(fail_message());
    const char *problem = NULL;
    if (!strstr(log, "spill stores")) problem = "the compiler does not tell registers";
    if (has_spills(log) && !m->spills) problem = "spills registers";
    if (has_remarks(log)) problem = "has remarks about its products of warpgroups (C75xx)";
    free(image);
    free(log);
    return problem ? strdup(problem) : NULL;
}

static void test_all_compile(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__ /* NVRTC is nobody's to sanitize: a few texts show that the host's side is sound */
    static const char *const archs[] = {"sm_90a"};
    enum { EVERY = 8 };
#else
    static const char *const archs[] = {"sm_80", "sm_90a"};
    enum { EVERY = 1 };
#endif
    const char *why;
    if (!cuda_nvrtc(&why)) {
        print_message("skipped, NVRTC is missing: %s\n", why);
        skip();
    }
    note_cases();
    assert_true(modules > 20 && written > 10);
    int failed = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : failed) collapse(2)
    for (int i = 0; i < modules; i += EVERY)
        for (int k = 0; k < COUNT_OF(archs); k++) {
            const char *problem = compile(&module[i], archs[k]);
            if (!problem) continue;
            failed++;
#pragma omp critical
            print_error("%s %s %s: %s\n", module[i].text, archs[k], module[i].options, problem);
            free((char *)problem);
        }
    print_message("%d modules for each of %d architectures\n", modules / EVERY,
                  (int)COUNT_OF(archs));
    for (int i = 0; i < modules; i++) free(module[i].source);
    assert_int_equal(failed, 0);
}

/* A row may stand at two places of the table, for some calls here and for others there. */
static bool same_row(const struct kernel *a, const struct kernel *b)
{
    return a->op == b->op && !strcmp(a->variant, b->variant);
}

/* What no case meets is never compared with anything, nor compiled here. */
static void test_every_row_has_a_case(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DT_F32, DT_BF16};
    const struct backend *cuda = backend_find("cuda");
    const struct kernel *row, *k;
    const struct op_case *c;
    int missing = 0;
    for (int r = 0; (row = cuda->row(r)); r++) {
        bool met = false;
        for (int i = 0; !met && (c = case_at(i)); i++)
            for (int d = 0; c->op == row->op && d < COUNT_OF(dtypes); d++) {
                struct node node;
                struct kernel_call call = {.attr = &node.attr, .target = h200()};
                if (case_node(c, dtypes[d], &node, call.in_type, call.out_type) != ST_OK) continue;
                call.n_in = node.n_in;
                call.n_out = node.n_out;
                for (int n = 0; (k = cuda->kernel((int)row->op, &call, n)); n++)
                    met |= same_row(k, row);
            }
        if (met) continue;
        missing++;
        print_error("no case is for %s %s\n", op_def(row->op)->name, row->variant);
    }
    assert_int_equal(missing, 0);
}

static void test_a_text_that_is_wrong(void **state)
{
    (void)state;
    char *image;
    int64_t bytes;
    if (!cuda_nvrtc(NULL)) skip();
    assert_int_equal(
        jit_compile("pointwise.cu", NULL, "-DT_X=nonsense", "sm_90a", &image, &bytes, NULL),
        ST_DEVICE);
    assert_non_null(strstr(fail_message(), "pointwise.cu"));
}
/* A register of a product is touched before the product was waited for. */
static void test_remarks_are_seen(void **state)
{
    (void)state;
    static char source[] = "#include \"hopper.cuh\"\n"
                           "KERNEL(128) touched(float *p, u64 a)\n"
                           "{\n"
                           "    float d[32];\n"
                           "    for (int i = 0; i < 32; i++) d[i] = p[i];\n"
                           "    wgmma_fence();\n"
                           "    wgmma_ss<64, false, false>(d, a, a, true);\n"
                           "    d[0] += 1;\n"
                           "    wgmma_ss<64, false, false>(d, a, a, true);\n"
                           "    wgmma_commit();\n"
                           "    wgmma_wait<0>();\n"
                           "    for (int i = 0; i < 32; i++) p[128 * i + threadIdx.x] = d[i];\n"
                           "}\n";
    struct module m = {.text = "touched.cu", .source = source, .arch = 90};
    if (!cuda_nvrtc(NULL)) skip();
    const char *problem = compile(&m, "sm_90a");
    assert_non_null(problem);
    assert_non_null(strstr(problem, "C75"));
    free((char *)problem);
    assert_null(compile(&m, "sm_80")); /* it is for the other alone */
}
#else
static void test_all_compile(void **state)
{
    (void)state;
    print_message("skipped: built without the CUDA toolkit's headers\n");
    skip();
}
#define test_a_text_that_is_wrong test_all_compile
#define test_every_row_has_a_case test_all_compile
#define test_remarks_are_seen     test_all_compile
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_has_a_case),
        cmocka_unit_test(test_a_text_that_is_wrong),
        cmocka_unit_test(test_remarks_are_seen),
        cmocka_unit_test(test_all_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
