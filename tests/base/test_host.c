#include "base/host.h"

#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void test_this_machine(void **state)
{
    (void)state;
    struct arena a = {0};
    struct host h;
    host_read(&h, &a);
    assert_true(strlen(h.cpu) > 2);
    assert_null(strchr(h.cpu, '\n'));
    assert_memory_equal(h.system, "Linux ", 6);
    assert_in_range(h.threads, 1, h.processors);
    assert_int_equal(h.threads, threads_available());
    assert_true(h.memory_free_bytes > 0);
    assert_true(h.memory_free_bytes <= h.memory_bytes);
#ifdef __x86_64__
    assert_int_equal(strstr(h.isa, "avx2") != NULL, __builtin_cpu_supports("avx2") != 0);
    assert_int_equal(strstr(h.isa, "avx512f") != NULL, __builtin_cpu_supports("avx512f") != 0);
#endif
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_this_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
