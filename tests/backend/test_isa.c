/* A limit on the instruction set applies to the kernels that are found and to oneDNN. The
 * library fixes its choice once in a process, so each limit is tested in a separate process. */
#include "base/isa.h"

#include "../support/calls.h"
#include "backend/backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The widest instruction set that the library may report under each limit. */
static const char *const library_names[ISA_COUNT] = {
    [ISA_AMX] = "avx512_core_amx", [ISA_AVX512_BF16] = "avx512_core_bf16",
    [ISA_AVX512] = "avx512_core",  [ISA_AVX2] = "avx2",
    [ISA_SSE2] = "sse41",          [ISA_NEON] = "aarch64",
};

/* The instruction set in the name of a row ("avx2", "blocked_avx2"); ISA_AUTO: there is none. */
static enum isa isa_of(const char *variant)
{
    const char *word = strncmp(variant, "blocked_", 8) ? variant : variant + 8;
    for (enum isa i = ISA_AUTO + 1; i < ISA_COUNT; i++)
        if (!strcmp(word, isa_words[i])) return i;
    return ISA_AUTO;
}

static bool expect(const char *what, bool ok, enum isa limit)
{
    if (!ok) fprintf(stderr, "%s: %s\n", isa_words[limit], what);
    return ok;
}

static void matmul_call(struct hand_call *h)
{
    call_input(h, type_2d(DT_F32, 70, 90));
    call_input(h, type_2d(DT_F32, 90, 50));
    call_output(h, type_2d(DT_F32, 70, 50));
}

/* No row of an operator exceeds the limit. If the set of the limit has kernels, a row uses it. */
static bool rows_are_within(enum op op, const struct hand_call *h, enum isa limit)
{
    const struct backend *cpu = backend_find("cpu");
    bool own = limit < ISA_AVX512, library = false, ok = true;
    const struct kernel *k;
    for (int n = 0; (k = cpu->kernels.find((int)op, &h->call, n)); n++) {
        enum isa isa = isa_of(k->variant);
        library |= !strcmp(k->variant, "onednn");
        own |= isa == limit;
        ok &= expect(k->variant, isa == ISA_AUTO || isa >= limit, limit);
    }
    ok &= expect("no row of this instruction set", own, limit);
    return ok && expect("a library row although the limit is plain C",
                        !library || limit != ISA_PLAIN, limit);
}

static bool rows_agree(struct hand_call *h, enum isa limit)
{
    static float first[70 * 50];
    const struct kernel *k;
    double worst = 0;
    for (int n = 0; (k = call_row(h, OP_MATMUL, n)); n++) {
        call_run(h, k);
        if (n == 0) memcpy(first, call_out(h, 0), sizeof first);
        for (int i = 0; i < COUNT_OF(first); i++)
            worst = fmax(worst, fabs((double)call_out(h, 0)[i] - (double)first[i]));
    }
    return expect("matmul rows differ", worst < 1e-4, limit);
}

static bool limit_is_respected(enum isa limit)
{
    struct hand_call one = {0}, two = {0};
    const struct backend *cpu = backend_find("cpu");
    void *context;
    if (isa_limit(limit) != ST_OK || cpu->open(0, &context) != ST_OK)
        return expect(fail_message(), false, limit);
    call_input(&one, type_2d(DT_F32, 3, 37));
    call_output(&one, type_2d(DT_F32, 3, 37));
    matmul_call(&two);
    bool ok = rows_are_within(OP_EXP, &one, limit) && rows_are_within(OP_MATMUL, &two, limit) &&
              rows_agree(&two, limit);
    const char *library = cpu->kernels.library_isa();
    if (library && library_names[limit])
        ok &=
            expect(library, isa_widest() > limit || !strcmp(library, library_names[limit]), limit);
    ok &= expect("a library is reported although the limit is plain C",
                 !library || limit != ISA_PLAIN, limit);
    cpu->close(context);
    /* Now the library's choice is fixed; running without the library is always possible. */
    enum isa least = isa_exists(ISA_NEON) ? ISA_NEON : ISA_SSE2;
    enum isa other = limit == least ? ISA_PLAIN : least;
    bool fixed = library && other != ISA_PLAIN;
    ok &= expect("the limit cannot be lowered", isa_limit(other) == ST_OK, limit);
    enum status st = cpu->open(0, &context);
    ok &= expect("open() must fail exactly if the library's choice is fixed",
                 (st == ST_UNSUPPORTED) == fixed, limit);
    if (st == ST_OK) cpu->close(context);
    call_release(&one);
    call_release(&two);
    return ok;
}

static void test_each_limit_is_respected(void **state)
{
    (void)state;
    for (enum isa limit = isa_widest(); limit < ISA_COUNT; limit++) {
        if (!isa_exists(limit)) continue;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(limit_is_respected(limit) ? 0 : 1);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("the limit isa=%s is not respected", isa_words[limit]);
    }
}

static void test_every_set_has_rows(void **state)
{
    (void)state;
    bool seen[ISA_COUNT] = {false};
    const struct kernel *k;
    for (int i = 0; (k = backend_find("cpu")->kernels.row(i)); i++) seen[isa_of(k->variant)] = true;
    assert_true(seen[ISA_AUTO]);
    for (enum isa i = ISA_AVX512; i < ISA_COUNT; i++) assert_int_equal(seen[i], isa_exists(i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_limit_is_respected),
        cmocka_unit_test(test_every_set_has_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
