/* cubin.c must read the same numbers of registers and bytes of static shared memory from a compiled
 * module as the assembler reports in its log. Needs NVRTC, no GPU. */
#include "../support/cases.h"
#include "base/arena.h"
#include "lab/lab.h"
#include "lab/occupancy/sweep.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/cubin.h"
#include "backend/cuda/runtime/jit.h"

static const char *const archs[] = {"sm_80", "sm_86", "sm_90a"};

/* Kernels with 1200 bytes of shared memory, with a name that extends the first, and without any. */
static const char SOURCE[] =
    "extern \"C\" __global__ void few(float *x)\n"
    "{ __shared__ float s[300]; extern __shared__ float more[];\n"
    "  s[threadIdx.x] = x[threadIdx.x]; more[threadIdx.x] = x[1]; __syncthreads();\n"
    "  x[threadIdx.x] = s[x[0] > 1 ? 7 : 9] + more[3]; }\n"
    "extern \"C\" __global__ void few_more(double *x)\n"
    "{ __shared__ double s[32]; s[threadIdx.x] = sin(x[threadIdx.x]); __syncthreads();\n"
    "  x[threadIdx.x] = s[31 - threadIdx.x]; }\n"
    "extern \"C\" __global__ void none(float *x) { x[threadIdx.x] = 0; }\n";

struct compiled {
    char *image, *log;
    int64_t bytes;
};

static struct compiled compile(const char *text, const char *source, const char *options,
                               const char *arch)
{
    struct compiled c = {0};
    if (jit_compile(text, source, options, arch, &c.image, &c.bytes, &c.log) != ST_OK)
        fail_msg("%s", fail_message());
    return c;
}

static void release(struct compiled *c)
{
    free(c->image);
    free(c->log);
}

/* The number before `word`, in the line of the log about the resources of the kernel. */
static int reported(const struct compiled *c, const char *entry, const char *word)
{
    char begin[128];
    snprintf(begin, sizeof begin, "Compiling entry function '%s'", entry);
    const char *at = strstr(c->log, begin);
    at = at ? strstr(at, ": Used ") : NULL;
    if (!at) fail_msg("the log does not describe %s:\n%s", entry, c->log);
    const char *end = strchr(at, '\n'), *found = strstr(at, word);
    if (!found || (end && found > end)) return 0;
    while (found > at && found[-1] >= '0' && found[-1] <= '9') found--;
    return atoi(found);
}

static void check(const struct compiled *c, const char *entry, const char *what)
{
    struct cubin_kernel k = {-1, -1};
    if (!cubin_kernel(c->image, c->bytes, entry, &k)) fail_msg("%s: nothing is read", what);
    if (k.registers != reported(c, entry, " registers"))
        fail_msg("%s, %s: %d registers, not %d", what, entry, k.registers,
                 reported(c, entry, " registers"));
    if (k.static_bytes != reported(c, entry, " bytes smem"))
        fail_msg("%s, %s: %lld bytes, not %d", what, entry, (long long)k.static_bytes,
                 reported(c, entry, " bytes smem"));
}

static bool no_compiler(void)
{
    return !cuda_nvrtc(NULL);
}

static void test_as_the_log_says(void **state)
{
    (void)state;
    if (no_compiler()) SKIP("NVRTC is missing");
    for (int i = 0; i < COUNT_OF(archs); i++) {
        struct compiled c = compile("few.cu", SOURCE, "", archs[i]);
        struct cubin_kernel k;
        check(&c, "few", archs[i]);
        check(&c, "few_more", archs[i]);
        check(&c, "none", archs[i]);
        assert_true(cubin_kernel(c.image, c.bytes, "few", &k));
        assert_int_equal(k.static_bytes, 1200);
        assert_true(cubin_kernel(c.image, c.bytes, "none", &k));
        assert_int_equal(k.static_bytes, 0);
        assert_false(cubin_kernel(c.image, c.bytes, "fe", &k));
        assert_false(cubin_kernel(c.image, c.bytes, "few_", &k));
        release(&c);
    }
}

/* Strobe's own kernels: they take 32 to 254 registers. */
static void test_many_registers(void **state)
{
    (void)state;
    if (no_compiler()) SKIP("NVRTC is missing");
    struct arena a = {0};
    int64_t bytes;
    int most = 0;
    for (const struct lab_rung *r = sweep_kernels; r->name; r++) {
        const char *options = lab_options(r, LAB_F32, 0, &a);
        struct compiled c = compile(r->file, lab_source(r, &bytes), options, "sm_90a");
        struct cubin_kernel k;
        check(&c, "occupancy", options);
        assert_true(cubin_kernel(c.image, c.bytes, "occupancy", &k));
        most = k.registers > most ? k.registers : most;
        release(&c);
    }
    assert_true(most > 200);
    arena_release(&a);
}

/* Copies an image so that it ends at the end of a page and the next page cannot be read. Then
 * reading beyond the image ends the test. */
struct guarded {
    char *pages, *image;
    size_t all;
};

static struct guarded guard(const char *image, int64_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = (size_t)bytes / page * page + page;
    struct guarded g = {.all = n + page};
    g.pages = mmap(NULL, g.all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.pages != MAP_FAILED);
    assert_int_equal(mprotect(g.pages + n, page, PROT_NONE), 0);
    g.image = g.pages + n - bytes;
    memcpy(g.image, image, (size_t)bytes);
    return g;
}

static void release_guarded(struct guarded *g)
{
    munmap(g->pages, g->all);
}

/* A truncated image is refused, unless it still has all parts that are read. */
static void test_cut(void **state)
{
    (void)state;
    if (no_compiler()) SKIP("NVRTC is missing");
    struct compiled c = compile("few.cu", SOURCE, "", "sm_90a");
    struct cubin_kernel whole, k;
    Elf64_Ehdr head;
    int refused = 0;
    memcpy(&head, c.image, sizeof head);
    int64_t table = (int64_t)(head.e_shoff + head.e_shnum * sizeof(Elf64_Shdr));
    assert_true(table <= c.bytes);
    assert_true(cubin_kernel(c.image, c.bytes, "few", &whole));
    for (int64_t n = 0; n < c.bytes; n++) {
        struct guarded g = guard(c.image, n);
        if (!cubin_kernel(g.image, n, "few", &k))
            refused++;
        else if (n < table || k.registers != whole.registers ||
                 k.static_bytes != whole.static_bytes)
            fail_msg("%lld bytes of %lld: %d registers, %lld bytes of shared memory", (long long)n,
                     (long long)c.bytes, k.registers, (long long)k.static_bytes);
        release_guarded(&g);
    }
    assert_true(refused >= table);
    release(&c);
}

static bool reads_with(struct guarded *g, int64_t bytes, size_t at, size_t n)
{
    struct cubin_kernel k;
    char was[8];
    memcpy(was, g->image + at, n);
    memset(g->image + at, 0xff, n);
    bool reads = cubin_kernel(g->image, bytes, "few", &k);
    memcpy(g->image + at, was, n);
    return reads;
}

/* A wrong header is refused. Whichever byte is damaged, nothing outside the image is read. */
static void test_damaged(void **state)
{
    (void)state;
    if (no_compiler()) SKIP("NVRTC is missing");
    struct compiled c = compile("few.cu", SOURCE, "", "sm_90a");
    struct guarded g = guard(c.image, c.bytes);
    struct cubin_kernel k;
    static const struct {
        const char *name;
        size_t at, n;
    } part[] = {
#define PART(NAME) {#NAME, offsetof(Elf64_Ehdr, NAME), sizeof(((Elf64_Ehdr *)0)->NAME)}
        {"the first byte", 0, 1}, PART(e_machine), PART(e_shoff), PART(e_shnum), PART(e_shstrndx),
    };
    for (int i = 0; i < COUNT_OF(part); i++)
        if (reads_with(&g, c.bytes, part[i].at, part[i].n))
            fail_msg("read in spite of %s", part[i].name);
    for (int64_t at = 0; at < c.bytes; at++) (void)reads_with(&g, c.bytes, (size_t)at, 1);
    assert_true(cubin_kernel(g.image, c.bytes, "few", &k)); /* nothing was left damaged */
    release_guarded(&g);
    release(&c);
}
#else
#define NO_CUDA(name)                                     \
    static void name(void **state)                        \
    {                                                     \
        (void)state;                                      \
        SKIP("built without the CUDA toolkit's headers"); \
    }
NO_CUDA(test_as_the_log_says)
NO_CUDA(test_many_registers)
NO_CUDA(test_cut)
NO_CUDA(test_damaged)
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_log_says),
        cmocka_unit_test(test_many_registers),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
