#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void test_aligned_and_zeroed(void **state)
{
    (void)state;
    struct arena a = {0};
    for (int round = 0; round < 400; round++) {
        if (round == 200) arena_release(&a); /* the second half reuses freed memory */
        int64_t size = 1 + round % 200 * 37;
        unsigned char *p = arena_alloc(&a, size);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (int64_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
        memset(p, 0xAB, (size_t)size);
    }
    arena_release(&a);
    assert_null(a.last);
}

static void test_larger_than_a_block(void **state)
{
    (void)state;
    struct arena a = {0};
    char *small = arena_strdup(&a, "before");
    char *large = arena_alloc(&a, 1 << 20);
    memset(large, 1, 1 << 20);
    assert_string_equal(small, "before");
    assert_string_equal(arena_strdup(&a, "behind"), "behind");
    arena_release(&a);
}

static void test_printf(void **state)
{
    (void)state;
    struct arena a = {0};
    assert_string_equal(arena_printf(&a, "h.%d.%s", 3, "mlp"), "h.3.mlp");
    assert_string_equal(arena_printf(&a, "%s", ""), "");
    assert_int_equal(strlen(arena_printf(&a, "%5000d", 1)), 5000);
    arena_release(&a);
}

static void test_grow_keeps_contents(void **state)
{
    (void)state;
    struct arena a = {0};
    int *list = NULL, count = 0, capacity = 0;
    for (int i = 0; i < 1000; i++) {
        ARENA_GROW(&a, list, count, capacity);
        list[count++] = i;
    }
    for (int i = 0; i < 1000; i++) assert_int_equal(list[i], i);
    assert_in_range(capacity, 1000, 2000);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aligned_and_zeroed),
        cmocka_unit_test(test_larger_than_a_block),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_grow_keeps_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
