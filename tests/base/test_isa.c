#include "base/isa.h"

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
    arena_release(&a);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_texts),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
