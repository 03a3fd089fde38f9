/* A limit on the instruction set holds for the kernels that are found and for the library of products. The
 * library chooses once in a process, so each limit has a process of its own. */
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

/* The most that the library may say under each limit; it may say less. */
static const char *const library_words[ISA_COUNT] = {
    [ISA_AMX] = "avx512_core_amx", [ISA_AVX512_BF16] = "avx512_core_bf16",
    [ISA_AVX512] = "avx512_core",  [ISA_AVX2] = "avx2",
    [ISA_SSE2] = "sse41",
};

/* The set that a row's name speaks of ("avx2", "blocked_avx2"); ISA_AUTO: of none. */
static enum isa isa_of(const char *variant)
{
    const char *word = strncmp(variant, "blocked_", 8) ? variant : variant + 8;
    for (enum isa i = ISA_AUTO + 1; i < ISA_COUNT; i++)
        if (!strcmp(word, isa_words[i])) return i;
    return ISA_AUTO;
}

static bool says(const char *what, bool ok, enum isa limit)
{
    if (!ok) fprintf(stderr, "%s: %s\n", isa_words[limit], what);
    return ok;
}

static void product(struct hand_call *h)
{
    call_input(h, type_2d(DT_F32, 70, 90));
    call_input(h, type_2d(DT_F32, 90, 50));
    call_output(h, type_2d(DT_F32, 70, 50));
}

/* All rows of an operator are within the limit, and one is of the limit's own set if it has kernels. */
static bool rows_are_within(enum op op, const struct hand_call *h, enum isa limit)
{
    const struct backend *cpu = backend_find("cpu");
    bool own = limit < ISA_AVX512, library = false, ok = true;
    const struct kernel *k;
    for (int n = 0; (k = cpu->kernels.find((int)op, &h->call, n)); n++) {
        enum isa isa = isa_of(k->variant);
        library |= !strcmp(k->variant, "onednn");
        own |= isa == limit;
        ok &= says(k->variant, isa == ISA_AUTO || isa >= limit, limit);
    }
    ok &= says("no row of its own", own, limit);
    return ok && says("a library, and yet none", !library || limit != ISA_PLAIN, limit);
}

/* Every row computes the same. */
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
    return says("products differ", worst < 1e-4, limit);
}

static bool holds(enum isa limit)
{
    struct hand_call one = {0}, two = {0};
    const struct backend *cpu = backend_find("cpu");
    void *context;
    if (isa_limit(limit) != ST_OK || cpu->open(0, &context) != ST_OK)
        return says(fail_message(), false, limit);
    call_input(&one, type_2d(DT_F32, 3, 37));
    call_output(&one, type_2d(DT_F32, 3, 37));
    product(&two);
    bool ok = rows_are_within(OP_EXP, &one, limit) && rows_are_within(OP_MATMUL, &two, limit) &&
              rows_agree(&two, limit);
    const char *library = cpu->kernels.library_isa();
    if (library && library_words[limit])
        ok &= says(library, isa_widest() > limit || !strcmp(library, library_words[limit]), limit);
    ok &= says("a library in plain C", !library || limit != ISA_PLAIN, limit);
    cpu->close(context);
    /* From here on the library is bound; doing without it is always possible. */
    enum isa other = limit == ISA_SSE2 ? ISA_PLAIN : ISA_SSE2;
    bool bound = library && other != ISA_PLAIN;
    ok &= says("cannot be lowered", isa_limit(other) == ST_OK, limit);
    enum status st = cpu->open(0, &context);
    ok &= says("the library was bound", (st == ST_UNSUPPORTED) == bound, limit);
    if (st == ST_OK) cpu->close(context);
    call_release(&one);
    call_release(&two);
    return ok;
}

static void test_each_limit_holds(void **state)
{
    (void)state;
    for (enum isa limit = isa_widest(); limit < ISA_COUNT; limit++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(holds(limit) ? 0 : 1);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0) fail_msg("isa=%s does not hold", isa_words[limit]);
    }
}

/* Whatever the table of groups says, no row of a set that is missing is ever found. */
static void test_every_row_names_a_set(void **state)
{
    (void)state;
    bool seen[ISA_COUNT] = {false};
    const struct kernel *k;
    for (int i = 0; (k = backend_find("cpu")->kernels.row(i)); i++) seen[isa_of(k->variant)] = true;
    assert_true(seen[ISA_PLAIN] && seen[ISA_AUTO]);
#ifdef __x86_64__
    assert_true(seen[ISA_AVX512] && seen[ISA_AVX2] && seen[ISA_SSE2]);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_limit_holds),
        cmocka_unit_test(test_every_row_names_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
