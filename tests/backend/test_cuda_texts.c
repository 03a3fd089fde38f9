/* Compiles every kernel of the GPU's table without a GPU: for all cases of `strobe check`, for
 * compute capability 8.0 and 9.0, or the one that a kernel requires. The arguments of each launch
 * must match the parameters of the kernel by name and type. Kernels must not spill registers unless
 * their row allows it, and NVRTC must not serialize WGMMA instructions.
 *
 * A kernel that passed is not compiled again: the user's cache (~/.cache/strobe/nvrtc_verdicts) has
 * one line for each hash of the source, the headers that it includes, the options and NVRTC's
 * version. NO_VERDICTS=1 compiles all kernels.
 * test: shards=4 slow timeout=1200; NVRTC takes minutes if the cache is empty */
#include "../support/cases.h"
#include "backend/backend.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "check/cases.h"
#include "graph/graph.h"
#include "lab/launch/launch.h"
#include "lab/memory/memory.h"
#include "lab/occupancy/sweep.h"
#include "lab/own.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/runtime/jit.h"
#include "backend/cuda/runtime/launch.h"

enum { MODULES = 4096 };

static struct module {
    char text[64], options[LAUNCH_OPTIONS], entry[64];
    char *source; /* NULL: built in */
    bool spills;
    int arch; /* 0: every architecture */
} module[MODULES];
static int modules, written, mismatches;

/* The source that a launch generates for the call; NULL: it is built in. */
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

static void note(struct cuda_launch *k, const struct kernel_call *call)
{
    if (!k->text) return;
    if (launch_match_arguments(call, k) != ST_OK) {
        mismatches++;
        print_error("%s\n", fail_message());
    }
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
    struct cuda_launches l;
    cuda_launches_of(&row->kernel, call, &l);
    for (int i = 0; i < l.n; i++) note(&l.launch[i], call);
}

/* A matmul of the library is not a launch; there may be launches before and after it. */
static void note_beside(const struct cuda_row *rows, const struct kernel_call *call, int op)
{
    for (const struct cuda_row *row = rows; row->kernel.run; row++)
        if ((int)row->kernel.op == op) note_launches(row, call);
}

static void note_rows(const struct backend *cuda, const struct kernel_call *call, int op)
{
    const struct kernel *k;
    for (int n = 0; (k = cuda->kernels.find(op, call, n)); n++) {
        if (k->prepare == cuda_prepare) {
            note_launches((const struct cuda_row *)k, call);
            continue;
        }
        note_beside(matmul_before, call, op);
        note_beside(matmul_after, call, op);
    }
}

/* The target of plans on a machine without a GPU; sources are compiled for other GPUs as well. */
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
    call.numerics = node.numerics;
    call.n_in = node.n_in;
    call.n_out = node.n_out;
    note_rows(backend_find("cuda"), &call, (int)node.op);
}

/* Matmuls with as many tiles as in a training step, unlike the cases: the widest tiles are
 * selected, which use the most registers. */
#define MATRIX(...) .type = {DT_F32, 2, {__VA_ARGS__}}
static const struct op_case large[] = {
    {OP_LINEAR_GELU, .attr.linear = {.keep = true},
     .in = {{MATRIX(16384, 768)},
            {MATRIX(768, 3072)},
            {.type = {DT_F32, 1, {3072}}, .stays_f32 = true}}},
    {OP_LINEAR_GELU, .attr.linear = {.keep = true, .tanh = true},
     .in = {{MATRIX(16384, 768)}, {MATRIX(768, 3072)}, {.type = {DT_F32, 1, {3072}}}}},
    {OP_MATMUL_GELU_GRAD, .attr.matmul = {.tb = true},
     .in = {{MATRIX(16384, 768)}, {MATRIX(3072, 768)}, {MATRIX(16384, 3072)}}},
    {OP_MATMUL_GELU_GRAD, .attr.matmul = {.tb = true, .tanh = true},
     .in = {{MATRIX(16384, 768)}, {MATRIX(3072, 768)}, {MATRIX(16384, 3072)}}},
};

/* The sums over ranks, which no case of `strobe check` has: they need other ranks. */
static const struct op_case sums[] = {
    {OP_ALL_REDUCE, .attr.group = {2}, .in = {{.type = {DT_F32, 1, {5003}}, .stays_f32 = true}}},
    {OP_REDUCE_SCATTER, .attr.group = {8},
     .in = {{.type = {DT_F32, 1, {5003}}, .stays_f32 = true}}},
};

/* The cases of heads of 256 are causal or lack dropout; without a mask and with dropout the forward
 * pass takes the most registers. */
static void note_wide_heads(const struct op_case *c)
{
    if (strcmp(c->what, "heads of 256")) return;
    struct op_case wide = *c;
    wide.attr.attention.causal = false;
    note_case(&wide, DT_BF16);
}

static void note_cases(void)
{
    const struct op_case *c;
    for (int i = 0; (c = case_at(i)); i++) {
        note_case(c, DT_F32), note_case(c, DT_BF16);
        note_wide_heads(c);
    }
    for (int i = 0; i < COUNT_OF(large); i++) note_case(&large[i], DT_BF16);
    for (int i = 0; i < COUNT_OF(sums); i++) note_case(&sums[i], DT_BF16);
}

static void note_rung(const struct lab_rung *r, enum lab_type type, int form)
{
    struct arena a = {0};
    assert_true(modules < MODULES);
    struct module *m = &module[modules++];
    *m = (struct module){.source = strdup(lab_text(r, &a)), .arch = r->arch > 80 ? r->arch : 0};
    snprintf(m->text, sizeof m->text, "%s", r->file);
    snprintf(m->options, sizeof m->options, "%s", lab_options(r, type, form, &a));
    arena_release(&a);
}

/* What `strobe lab LADDER --template` prints. */
static void note_template(const struct lab_ladder *l, enum lab_type type)
{
    struct arena a = {0};
    struct str s = {0};
    lab_own_template(l, true, &s);
    assert_true(modules < MODULES);
    struct module *m = &module[modules++];
    *m = (struct module){.source = strdup(str_text(&s))};
    snprintf(m->text, sizeof m->text, "%s/gpu/template.cu", l->name);
    snprintf(m->options, sizeof m->options, "%s", lab_options(&l->of_gpu[0], type, 0, &a));
    str_release(&s);
    arena_release(&a);
}

/* The rungs of all ladders (lab/lab.h) for every type that they support, their templates,
 * and the kernels of lab memory, lab occupancy and lab launch; none may spill. */
static void note_rungs(void)
{
    static const enum lab_type types[] = {LAB_F32, LAB_TF32, LAB_BF16};
    const struct lab_ladder *l;
    for (int i = 0; (l = lab_ladder_at(i)); i++) {
        note_template(l, LAB_F32), note_template(l, LAB_BF16);
        for (const struct lab_rung *r = l->of_gpu; r->name; r++)
            for (int k = 0; k < COUNT_OF(types); k++)
                for (int form = 0; form < lab_forms(l); form++)
                    if (r->file && lab_has_type(r, types[k])) note_rung(r, types[k], form);
    }
    for (const struct lab_rung *r = memory_gpu_kernels; r->name; r++) note_rung(r, LAB_F32, 0);
    for (const struct lab_rung *r = sweep_kernels; r->name; r++) note_rung(r, LAB_F32, 0);
    for (const struct lab_rung *r = launch_gpu_kernels; r->name; r++) note_rung(r, LAB_F32, 0);
}

/* The log has "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" per kernel. */
static bool has_spills(const char *log)
{
    for (const char *at = log; (at = strstr(at, " bytes spill stores")); at++) {
        const char *number = at;
        while (number > log && number[-1] >= '0' && number[-1] <= '9') number--;
        if (atoi(number) > 0) return true;
    }
    return false;
}

/* The compiler numbers its remarks about WGMMA instructions and setmaxnreg: 7503 ... 7520. Each
 * means that an optimization of the source was lost (WGMMAs are serialized, registers are not
 * moved). */
static bool has_remarks(const char *log)
{
    return strstr(log, "(C75") != NULL;
}

/* A verdict is kept under the hash of everything that it depends on. */
enum { MOST_HEADERS = 32, VERDICTS_MOST_BYTES = 8 << 20 };

/* Adds a source and, once each, the headers that it includes directly or indirectly. */
static void hash_text(struct hash *h, const char *text, const char *seen[], int *n)
{
    static const char include[] = "#include \"";
    hash_add(h, text, (int64_t)strlen(text) + 1);
    for (const char *at = text; (at = strstr(at, include)); at++) {
        const char *name = at + strlen(include);
        int64_t bytes;
        for (int i = 0; cuda_text_name(i); i++) {
            const char *header = cuda_text_name(i);
            size_t length = strlen(header);
            bool known = strncmp(name, header, length) || name[length] != '"';
            for (int k = 0; k < *n; k++) known |= seen[k] == header;
            if (known) continue;
            assert_true(*n < MOST_HEADERS);
            seen[(*n)++] = header;
            hash_text(h, cuda_text(header, &bytes), seen, n);
        }
    }
}

static void verdict_key(const struct module *m, const char *arch, char ret_hex[HASH_HEX])
{
    const char *seen[MOST_HEADERS];
    int version[2] = {0, 0}, n = 0;
    int64_t bytes;
    assert_int_equal(cuda_nvrtc(NULL)->nvrtcVersion(&version[0], &version[1]), 0);
    struct hash *h = hash_open();
    hash_add(h, version, sizeof version);
    for (int i = 0; jit_options[i]; i++)
        hash_add(h, jit_options[i], (int64_t)strlen(jit_options[i]) + 1);
    hash_add(h, m->options, (int64_t)strlen(m->options) + 1);
    hash_add(h, arch, (int64_t)strlen(arch) + 1);
    hash_add(h, &m->spills, sizeof m->spills);
    hash_text(h, m->source ? m->source : cuda_text(m->text, &bytes), seen, &n);
    hash_close(h, ret_hex);
}

static const char *verdicts_path(struct arena *a)
{
    const char *folder = getenv("NO_VERDICTS") ? NULL : file_cache_folder(a);
    if (!folder || file_make_dirs(folder) != ST_OK) return NULL;
    return arena_printf(a, "%s/nvrtc_verdicts", folder);
}

/* Each short line is appended by one write, so concurrent programs do not mix their lines. */
static void keep_verdict(const char *path, const char *hex)
{
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s\n", hex);
    fclose(f);
}

/* All verdicts as one string. A file that grew too large is removed. */
static const char *read_verdicts(const char *path, struct arena *a)
{
    struct stat s;
    char *text;
    int64_t bytes;
    if (!path || stat(path, &s)) return "";
    if (s.st_size > VERDICTS_MOST_BYTES)
        remove(path);
    else if (file_read(path, a, &text, &bytes) == ST_OK)
        return text;
    return "";
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
    if (!strstr(log, "spill stores")) problem = "the compiler does not report registers";
    if (has_spills(log) && !m->spills) problem = "spills registers";
    if (has_remarks(log)) problem = "has remarks about WGMMA instructions (C75xx)";
    free(image);
    free(log);
    return problem ? strdup(problem) : NULL;
}

static void test_all_compile(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__ /* a few sources are enough to exercise the code around NVRTC */
    static const char *const archs[] = {"sm_90a"};
    enum { EVERY = 8 };
#else
    static const char *const archs[] = {"sm_80", "sm_90a"};
    enum { EVERY = 1 };
#endif
    const char *why;
    if (!cuda_nvrtc(&why)) {
        SKIP("NVRTC is missing: %s", why);
    }
    note_cases();
    note_rungs();
    assert_true(modules > 20 && written > 10);
    struct arena arena = {0};
    const char *path = verdicts_path(&arena), *known = read_verdicts(path, &arena);
    int failed = mismatches, compiled = 0, kept = 0;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : failed, compiled, kept) collapse(2)
    for (int i = 0; i < modules; i += EVERY)
        for (int k = 0; k < COUNT_OF(archs); k++) {
            char hex[HASH_HEX];
            if (!shard_has(i / EVERY)) continue;
            verdict_key(&module[i], archs[k], hex);
            if (strstr(known, hex)) {
                kept++;
                continue;
            }
            compiled++;
            const char *problem = compile(&module[i], archs[k]);
            if (!problem) {
                keep_verdict(path, hex);
                continue;
            }
            failed++;
#pragma omp critical
            print_error("%s %s %s: %s\n", module[i].text, archs[k], module[i].options, problem);
            free((char *)problem);
        }
    print_message("%d modules in all; %d compiled, %d known to compile\n", modules, compiled, kept);
    arena_release(&arena);
    for (int i = 0; i < modules; i++) free(module[i].source);
    assert_int_equal(failed, 0);
}

/* The table may list a row twice, for different calls. */
static bool same_row(const struct kernel *a, const struct kernel *b)
{
    return a->op == b->op && !strcmp(a->variant, b->variant);
}

/* A row without a case would never be compared with a reference, nor compiled here. Collectives
 * need other ranks (test_collective_rows.c). */
static void test_every_row_has_a_case(void **state)
{
    (void)state;
    static const enum dtype dtypes[] = {DT_F32, DT_BF16};
    const struct backend *cuda = backend_find("cuda");
    const struct kernel *row, *k;
    const struct op_case *c;
    int missing = 0;
    for (int r = 0; (row = cuda->kernels.row(r)); r++) {
        bool met = op_def(row->op)->family == FAMILY_COMMUNICATION;
        for (int i = 0; !met && (c = case_at(i)); i++)
            for (int d = 0; c->op == row->op && d < COUNT_OF(dtypes); d++) {
                struct node node;
                struct kernel_call call = {.attr = &node.attr, .target = h200()};
                if (case_node(c, dtypes[d], &node, call.in_type, call.out_type) != ST_OK) continue;
                call.numerics = node.numerics;
                call.n_in = node.n_in;
                call.n_out = node.n_out;
                for (int n = 0; (k = cuda->kernels.find((int)row->op, &call, n)); n++)
                    met |= same_row(k, row);
            }
        if (met) continue;
        missing++;
        print_error("no case is for %s %s\n", op_def(row->op)->name, row->variant);
    }
    assert_int_equal(missing, 0);
}

static void test_invalid_source(void **state)
{
    (void)state;
    char *image;
    int64_t bytes;
    if (!cuda_nvrtc(NULL)) SKIP("NVRTC is missing");
    assert_int_equal(
        jit_compile("pointwise.cu", NULL, "-DT_X=nonsense", "sm_90a", &image, &bytes, NULL),
        ST_DEVICE);
    assert_non_null(strstr(fail_message(), "pointwise.cu"));
}
/* The kernel accesses the accumulator of a WGMMA before it waits for the WGMMA. */
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
    if (!cuda_nvrtc(NULL)) SKIP("NVRTC is missing");
    const char *problem = compile(&m, "sm_90a");
    assert_non_null(problem);
    assert_non_null(strstr(problem, "C75"));
    free((char *)problem);
    assert_null(compile(&m, "sm_80")); /* not compiled, because m is for sm_90a only */
}
#else
static void test_all_compile(void **state)
{
    (void)state;
    SKIP("built without the CUDA toolkit's headers");
}
#define test_invalid_source       test_all_compile
#define test_every_row_has_a_case test_all_compile
#define test_remarks_are_seen     test_all_compile
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_has_a_case),
        cmocka_unit_test(test_invalid_source),
        cmocka_unit_test(test_remarks_are_seen),
        cmocka_unit_test(test_all_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
