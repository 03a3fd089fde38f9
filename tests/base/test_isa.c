#include "base/isa.h"

#include "../support/cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void test_known_texts(void **state)
{
    (void)state;
    struct arena a = {0};
    assert_string_equal(isa_names_of("processor\t: 0\n"
                                     "flags\t\t: fpu avx avx2x avx512f avx512_bf16x amx_bf16\n"
                                     "bugs\t\t: avx2 fma\n",
                                     &a),
                        "avx512f amx_bf16");
    assert_string_equal(isa_names_of("processor : 0\nFeatures : fp asimd sve bf16\n", &a),
                        "asimd sve bf16");
    assert_string_equal(isa_names_of("processor : 0\n", &a), "");
    assert_string_equal(isa_names_of("", &a), "");
    arena_release(&a);
}

static void test_this_machine(void **state)
{
    (void)state;
#ifdef __x86_64__
    struct arena a = {0};
    const char *names = isa_names(&a);
    assert_int_equal(strstr(names, "avx2") != NULL, __builtin_cpu_supports("avx2") != 0);
    assert_int_equal(strstr(names, "avx512f") != NULL, __builtin_cpu_supports("avx512f") != 0);
    bool bf16 = strstr(names, "avx512_bf16"), amx = strstr(names, "amx_bf16");
    if (isa_widest() <= ISA_AVX512) assert_int_equal(isa_widest() <= ISA_AVX512_BF16, bf16);
    assert_true(amx || isa_widest() != ISA_AMX); /* the operating system may refuse AMX */
    arena_release(&a);
#else
    SKIP("not x86-64");
#endif
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(isa_words[ISA_AUTO], "auto");
    assert_string_equal(isa_words[ISA_AVX512_BF16], "avx512_bf16");
    assert_string_equal(isa_words[ISA_PLAIN], "plain");
    assert_null(isa_words[ISA_COUNT]);
    assert_int_equal(isa_limit_word("plain"), ST_OK);
    assert_int_equal(isa_limited(), ISA_PLAIN);
    assert_int_equal(isa_limit_word("avx"), ST_USAGE);
    assert_string_equal(fail_message(), isa_exists(ISA_NEON)
                                            ? "isa must be one of: auto, neon, plain; got avx"
                                            : "isa must be one of: auto, amx, avx512_bf16, "
                                              "avx512, avx2, sse2, plain; got avx");
    assert_int_equal(isa_limited(), ISA_PLAIN);
    assert_int_equal(isa_limit_word("auto"), ST_OK);
}

/* The message lists the sets that the processor has; those of the other family are refused. */
static void test_missing_set(void **state)
{
    (void)state;
#if defined(__x86_64__)
    assert_int_equal(isa_check(ISA_AMX, ISA_AVX2), ST_UNSUPPORTED);
    assert_string_equal(fail_message(), "isa=amx: this processor supports only avx2, sse2, plain");
    assert_int_equal(isa_check(ISA_SSE2, ISA_PLAIN), ST_UNSUPPORTED);
    assert_string_equal(fail_message(), "isa=sse2: this processor supports only plain");
    assert_int_equal(isa_check(ISA_NEON, ISA_SSE2), ST_UNSUPPORTED);
    assert_string_equal(fail_message(), "isa=neon: this processor supports only sse2, plain");
    assert_int_equal(isa_check(ISA_AVX2, ISA_AVX2), ST_OK);
#elif defined(__aarch64__)
    assert_int_equal(isa_widest(), ISA_NEON);
    assert_int_equal(isa_check(ISA_SSE2, ISA_NEON), ST_UNSUPPORTED);
    assert_string_equal(fail_message(), "isa=sse2: this processor supports only neon, plain");
#endif
    assert_int_equal(isa_check(ISA_PLAIN, ISA_AMX), ST_OK);
    assert_int_equal(isa_check(ISA_AUTO, ISA_PLAIN), ST_OK);
}

static void test_limit_excludes_wider_sets(void **state)
{
    (void)state;
    enum isa widest = isa_widest();
    assert_int_equal(isa_used(), widest);
    for (enum isa limit = ISA_AUTO; limit < ISA_COUNT; limit++) {
        bool is_there = limit == ISA_AUTO || (limit >= widest && isa_exists(limit));
        assert_int_equal(isa_limit(limit) == ST_OK, is_there);
        if (!is_there) continue;
        enum isa used = limit == ISA_AUTO ? widest : limit;
        assert_int_equal(isa_used(), used);
        for (enum isa i = ISA_AUTO + 1; i < ISA_COUNT; i++)
            assert_int_equal(isa_allows(i), i >= used && isa_exists(i));
    }
    assert_int_equal(isa_limit(ISA_AUTO), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_texts),
        cmocka_unit_test(test_this_machine),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_missing_set),
        cmocka_unit_test(test_limit_excludes_wider_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
