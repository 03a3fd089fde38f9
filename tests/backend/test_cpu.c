#include "../support/cases.h"
#include "backend/backend.h"
#include "backend/kernel.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct backend *open_cpu(void **ret_context)
{
    const struct backend *cpu = backend_find("cpu");
    assert_non_null(cpu);
    assert_int_equal(cpu->open(0, ret_context), ST_OK);
    return cpu;
}

static void test_memory_is_aligned_zeroed_and_copied(void **state)
{
    (void)state;
    void *context;
    const struct backend *cpu = open_cpu(&context);
    static const int64_t sizes[] = {0, 1, 100, 4096, (2 << 20) - 1, (2 << 20) + 1};
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        char *mem;
        assert_int_equal(cpu->memory.alloc(context, sizes[i], (void **)&mem), ST_OK);
        assert_non_null(mem);
        assert_int_equal((uintptr_t)mem % 64, 0);
        for (int64_t k = 0; k < sizes[i]; k++) assert_int_equal(mem[k], 0);
        cpu->memory.free(context, mem);
    }
    float from[3] = {1, 2, 3}, to[3] = {0};
    void *mem;
    assert_int_equal(cpu->memory.alloc(context, sizeof from, &mem), ST_OK);
    assert_int_equal(cpu->memory.upload(context, mem, from, sizeof from), ST_OK);
    assert_int_equal(cpu->memory.download(context, to, mem, sizeof to), ST_OK);
    assert_memory_equal(from, to, sizeof from);
    cpu->memory.free(context, mem);
    cpu->close(context);
}

static void test_used_memory_is_zeroed(void **state)
{
    (void)state;
    enum { BLOCKS = 64, SIZE = 1000 };
    void *context;
    char *mem[BLOCKS];
    const struct backend *cpu = open_cpu(&context);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            assert_int_equal(cpu->memory.alloc(context, SIZE, (void **)&mem[i]), ST_OK);
            for (int k = 0; k < SIZE; k++) assert_int_equal(mem[i][k], 0);
            memset(mem[i], 1, SIZE);
        }
        for (int i = 0; i < BLOCKS; i++) cpu->memory.free(context, mem[i]);
    }
    cpu->close(context);
}

static void test_too_much_memory_fails(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer aborts where malloc would return NULL");
#endif
    void *context, *mem = NULL;
    const struct backend *cpu = open_cpu(&context);
    assert_int_equal(cpu->memory.alloc(context, INT64_MAX / 4, &mem), ST_MEMORY);
    assert_null(mem);
    assert_non_null(strstr(fail_message(), "memory"));
    cpu->close(context);
}

static void test_there_is_one_device(void **state)
{
    (void)state;
    void *context = NULL;
    assert_int_equal(backend_find("cpu")->open(1, &context), ST_UNSUPPORTED);
    assert_null(context);
}

static void test_time_passes(void **state)
{
    (void)state;
    void *context;
    double ms = -1;
    const struct backend *cpu = open_cpu(&context);
    assert_int_equal(cpu->stream.event_record(context, 0), ST_OK);
    for (volatile int i = 0; i < 100000; i = i + 1) {}
    assert_int_equal(cpu->stream.event_record(context, BACKEND_EVENTS - 1), ST_OK);
    assert_int_equal(cpu->stream.event_elapsed(context, 0, BACKEND_EVENTS - 1, &ms), ST_OK);
    assert_true(ms > 0 && ms < 60e3);
    cpu->close(context);
}

static struct kernel_call scale_call(enum dtype dtype)
{
    static const union attr attr = {.constant = {2}};
    return (struct kernel_call){
        .attr = &attr,
        .n_in = 1,
        .n_out = 1,
        .in_type = {type_1d(dtype, 3)},
        .out_type = {type_1d(dtype, 3)},
    };
}

/* The reference is the last row, whatever else is built in, and integers have no kernel. */
static void test_rows_are_found_in_order(void **state)
{
    (void)state;
    const struct backend *cpu = backend_find("cpu");
    struct kernel_call f32 = scale_call(DT_F32), i32 = scale_call(DT_I32);
    const struct kernel *k, *last = NULL;
    for (int n = 0; (k = cpu->kernels.find(OP_SCALE, &f32, n)); n++) {
        assert_int_equal(k->op, OP_SCALE);
        assert_ptr_not_equal(k, last);
        last = k;
    }
    assert_non_null(last);
    assert_string_equal(last->variant, "ref");
    assert_null(cpu->kernels.find(OP_SCALE, &i32, 0));
}

static void test_every_row_is_listed(void **state)
{
    (void)state;
    const struct backend *cpu = backend_find("cpu");
    const struct kernel *k;
    bool seen[OP_COUNT] = {false};
    for (int i = 0; (k = cpu->kernels.row(i)); i++) {
        assert_non_null(k->variant);
        assert_non_null(k->run);
        seen[k->op] = true;
    }
    if (!cpu->kernels.library_isa()) seen[OP_PACK] = true; /* only oneDNN packs */
    for (int op = 0; op < OP_COUNT; op++)
        if (op != OP_LEAF && !(op_def((enum op)op)->flags & OP_VIEW)) assert_true(seen[op]);
}

/* bfloat16 keeps the upper half of a float, rounded to nearest, ties to even. */
static void test_casts_to_bfloat16(void **state)
{
    (void)state;
    static const struct {
        double x;
        uint16_t bits;
    } cases[] = {
        {1, 0x3f80},
        {-2, 0xc000},
        {0x1.01p0, 0x3f80},         /* tie: to even */
        {0x1.03p0, 0x3f82},         /* tie: to even, upwards */
        {0x1.010002p0, 0x3f81},     /* just above a tie */
        {0x1.0100000001p0, 0x3f81}, /* above a tie, but equal to the tie as a float */
        {-0x1.0100000001p0, 0xbf81},
        {0x1.02ffffffffp0, 0x3f81}, /* below a tie, but equal to the tie as a float */
        {INFINITY, 0x7f80},
        {-INFINITY, 0xff80},
        {3.4e38, 0x7f80},   /* larger than the largest bfloat16 */
        {0x1p-133, 0x0001}, /* the smallest bfloat16 */
        {1e-60, 0x0000},
        {NAN, 0x7fc0},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        double x = cases[i].x, back;
        uint16_t bits = 0xffff;
        struct kernel_call call = scale_call(DT_F64);
        call.out_type[0] = type_1d(DT_BF16, 1);
        call.in[0] = &x;
        call.out[0] = &bits;
        assert_int_equal(backend_find("cpu")->kernels.find(OP_CAST, &call, 0)->run(&call), ST_OK);
        assert_int_equal(bits, cases[i].bits);
        call.in_type[0] = type_1d(DT_BF16, 1);
        call.out_type[0] = type_1d(DT_F64, 1);
        call.in[0] = &bits;
        call.out[0] = &back;
        assert_int_equal(backend_find("cpu")->kernels.find(OP_CAST, &call, 0)->run(&call), ST_OK);
        if (isfinite(x) && fabs(x) < 1e38) assert_true(fabs(back - x) <= fabs(x) / 256 + 1e-40);
    }
}

static void test_ids_outside_their_table_are_refused(void **state)
{
    (void)state;
    float table[6] = {0}, out[2];
    for (int32_t id = -1; id <= 3; id += 4) {
        struct kernel_call call = {
            .n_in = 2,
            .n_out = 1,
            .in_type = {type_2d(DT_F32, 3, 2), type_1d(DT_I32, 1)},
            .out_type = {type_2d(DT_F32, 1, 2)},
            .in = {table, &id},
            .out = {out},
        };
        const struct kernel *k = NULL, *ref = NULL;
        for (int n = 0; (k = backend_find("cpu")->kernels.find(OP_EMBED, &call, n)); n++) ref = k;
        assert_non_null(ref);
        assert_int_equal(ref->run(&call), ST_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_aligned_zeroed_and_copied),
        cmocka_unit_test(test_used_memory_is_zeroed),
        cmocka_unit_test(test_too_much_memory_fails),
        cmocka_unit_test(test_there_is_one_device),
        cmocka_unit_test(test_time_passes),
        cmocka_unit_test(test_rows_are_found_in_order),
        cmocka_unit_test(test_every_row_is_listed),
        cmocka_unit_test(test_casts_to_bfloat16),
        cmocka_unit_test(test_ids_outside_their_table_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
