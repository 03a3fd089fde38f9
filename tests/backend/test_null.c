#include "backend/backend.h"
#include "backend/kernel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_backends_are_found_by_name(void **state)
{
    (void)state;
    assert_null(backend_find("abacus"));
    assert_null(backend_at(-1));
    const struct backend *b;
    int n = 0;
    for (; (b = backend_at(n)); n++) assert_ptr_equal(backend_find(b->name), b);
    assert_true(n >= 2);
}

/* Allocations larger than any machine: they do not overlap and are never accessed. */
static void test_addresses_without_memory(void **state)
{
    (void)state;
    const struct backend *null = backend_find("null");
    const int64_t size = (int64_t)1 << 40;
    void *context, *a, *b;
    assert_int_equal(null->open(0, &context), ST_OK);
    assert_int_equal(null->memory.alloc(context, size, &a), ST_OK);
    assert_int_equal(null->memory.alloc(context, 0, &b), ST_OK);
    assert_non_null(a);
    assert_int_equal((uintptr_t)a % 64, 0);
    assert_int_equal((uintptr_t)b % 64, 0);
    assert_true((uintptr_t)b - (uintptr_t)a >= (uintptr_t)size);
    assert_int_equal(null->memory.alloc(context, 1, &a), ST_OK);
    assert_int_equal(null->memory.alloc(context, 1, &b), ST_OK);
    assert_ptr_not_equal(a, b);
    float x[2] = {1, 2};
    assert_int_equal(null->memory.upload(context, a, x, sizeof x), ST_OK);
    assert_int_equal(null->memory.download(context, x, a, sizeof x), ST_OK);
    assert_true(x[0] == 0 && x[1] == 0);
    null->memory.free(context, a);
    null->close(context);
}

/* Backends that open no library have no function to list them. */
static void test_libraries_end(void **state)
{
    (void)state;
    struct device_library l;
    assert_false(backend_library_at(backend_find("null"), 0, &l));
    assert_false(backend_library_at(backend_find("cpu"), 0, &l));
    assert_false(backend_library(backend_find("cpu"), "driver", &l));
    for (int b = 0; backend_at(b); b++) {
        int n = 0;
        while (backend_library_at(backend_at(b), n, &l)) n++;
        assert_true(n < 8);
    }
}

/* Every operator has one row, so any graph can be planned; running it does nothing. */
static void test_every_operator_has_a_row(void **state)
{
    (void)state;
    const struct backend *null = backend_find("null");
    for (int op = 0; op < OP_COUNT; op++) {
        struct kernel_call call = {0};
        const struct kernel *k = null->kernels.find(op, &call, 0);
        assert_non_null(k);
        assert_int_equal(k->op, op);
        assert_string_equal(k->variant, "null");
        assert_int_equal(k->run(&call), ST_OK);
        assert_null(null->kernels.find(op, &call, 1));
        assert_ptr_equal(null->kernels.row(op), k);
    }
    assert_null(null->kernels.row(OP_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backends_are_found_by_name),
        cmocka_unit_test(test_addresses_without_memory),
        cmocka_unit_test(test_libraries_end),
        cmocka_unit_test(test_every_operator_has_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
