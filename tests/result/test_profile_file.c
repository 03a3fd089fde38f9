#include "../support/profile_text.h"
#include "../support/run_fixture.h"
#include "result/profile_file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct profile_file read_text(struct fixture *f, const char *text)
{
    struct profile_file p;
    fixture_write(f, "a/profile.json", text);
    if (profile_file_read(fixture_path(f, "a/profile.json"), "a", &f->arena, &p) != ST_OK)
        fail_msg("%s", fail_message());
    return p;
}

static void test_rows_are_read(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_text(f, profile_text(profile_slow, &f->arena));
    assert_int_equal(p.rows, 5);
    assert_int_equal(p.run, -1);
    assert_string_equal(p.times_by, "clock");
    const struct profile_row *r = &p.row[1];
    assert_string_equal(r->op_name, "SOFTMAX");
    assert_string_equal(profile_file_family_name(r->family), "softmax");
    assert_int_equal(r->range.layer, 0);
    assert_int_equal(r->range.words, 4);
    assert_string_equal(r->range.word[3], "softmax");
    assert_float_equal(r->ms, 3, 1e-9);
    assert_float_equal(r->run_ms.median, 2.9, 1e-9);
    assert_null(r->device_kernel);
    assert_string_equal(p.machine, "A processor");
    assert_int_equal(p.products, 1);
    assert_float_equal(p.product[0].rate, 4e11, 1);
    /* 1 MiB is half of the cache; larger tensors are in memory. */
    assert_int_equal(p.copies, 2);
    assert_float_equal(p.copy[0].rate, 4e10, 1);
    assert_float_equal(p.copy[1].rate, 2e11, 1);
}

/* Block 1's softmax is another instance of block 0's kernel; a matmul of another shape is not. */
static void test_rows_are_joined_to_kernels(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_text(f, profile_text(profile_slow, &f->arena));
    assert_int_equal(p.kernels, 4);
    assert_int_equal(p.row[1].kernel, p.row[2].kernel);
    assert_int_not_equal(p.row[0].kernel, p.row[3].kernel);
    const struct profile_file_kernel *k = &p.kernel[p.row[1].kernel];
    assert_string_equal(k->name, "SOFTMAX f32 (4,8) avx512");
    assert_string_equal(k->label, "SOFTMAX f32 (4,8)");
    assert_float_equal(k->ms, 7, 1e-9);
    assert_float_equal(k->work_ms, 7, 1e-9);
    assert_float_equal(k->per_step, 2, 1e-9);
    assert_float_equal(k->flops, 2000, 1e-9);
    assert_float_equal(k->floor_ms, 1, 1e-9);
}

/* The work of a node with two kernels counts for the longer one, in the time of both. */
static void test_work_is_of_all_kernels_of_a_node(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_text(
        f,
        "{\"v\":1,\"rows\":["
        "{\"op\":\"MATMUL\",\"device_kernel\":\"one\",\"ms_per_step\":3,\"work_ms_per_step\":5},"
        "{\"op\":\"MATMUL\",\"device_kernel\":\"two\",\"ms_per_step\":2,\"work_ms_per_step\":0}]}");
    assert_int_equal(p.kernels, 2);
    assert_float_equal(p.kernel[0].ms, 3, 1e-9);
    assert_float_equal(p.kernel[0].work_ms, 5, 1e-9);
    assert_float_equal(p.kernel[1].work_ms, 0, 0);
}

static void test_timeline_and_memory(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_text(f, profile_text(profile_slow, &f->arena));
    /* One of four moments names a missing row, and one ends before it begins. */
    assert_int_equal(p.moments, 2);
    assert_float_equal(p.moment[1].start_us, 2000.5, 1e-9);
    const struct profile_file_memory *m = &p.memory;
    assert_int_equal(m->parts, 3);
    assert_string_equal(m->part[1], "saved");
    assert_int_equal(m->columns, 2);
    assert_int_equal(m->peak, 1);
    assert_float_equal(m->column[1].bytes[1], 300, 1e-9);
    assert_int_equal(p.answers, 1);
    assert_string_equal(p.answer[0].about, "top kernel");
}

/* Fields that an older or another program did not write are missing, without further effect. */
static void test_missing_fields(void **state)
{
    struct fixture *f = *state;
    struct profile_file p =
        read_text(f, "{\"v\":1,\"rows\":[{},{\"family\":\"new\",\"range\":[1,\"x\"],"
                     "\"layer\":-3,\"flops\":null,\"ms_per_step\":\"long\"}],"
                     "\"timeline\":7,\"memory\":null,\"machine\":null,\"words\":[3]}");
    assert_int_equal(p.rows, 2);
    assert_string_equal(p.row[0].range.word[0], "step");
    assert_string_equal(profile_file_family_name(p.row[1].family), "other");
    const char *name = profile_file_family_name(profile_file_family("of no kernel")); /* old name */
    assert_string_equal(name, "inputs and results");
    assert_string_equal(p.row[1].range.word[0], "x");
    assert_int_equal(p.row[1].range.layer, -1);
    assert_true(isnan(p.row[1].flops));
    assert_float_equal(p.row[1].ms, 0, 0);
    assert_int_equal(p.moments + p.memory.columns + p.products + p.copies + p.answers, 0);
    assert_null(p.machine);
    assert_non_null(
        strstr(profile_file_words(&p, &f->arena), "a: a step takes 0.000 ms on average"));
}

static void test_counters_are_read(void **state)
{
    struct fixture *f = *state;
    struct profile_file p =
        read_text(f, "{\"v\":1,\"rows\":[{\"counters\":null},{\"counters\":{\"dram_read\":5,"
                     "\"dram_written\":6,\"dram_of_node\":12,\"tensor_active\":0.25,"
                     "\"sm_active\":0.5,\"dram_busy\":0.75}}]}");
    const struct profile_row *r = &p.row[1];
    assert_true(isnan(p.row[0].dram_read) && isnan(p.row[0].sm_active));
    assert_true(r->dram_read == 5 && r->dram_written == 6 && r->dram_of_node == 12);
    assert_true(r->tensor_active == 0.25 && r->sm_active == 0.5 && r->dram_busy == 0.75);
}

static void test_launches_are_read(void **state)
{
    struct fixture *f = *state;
    struct profile_file p =
        read_text(f, "{\"v\":1,\"rows\":[{},{\"launch\":{\"blocks\":3072,\"threads\":128,"
                     "\"registers\":48,\"static_bytes\":512,\"dynamic_bytes\":1024,"
                     "\"sm_blocks\":10,\"sm_warps\":40,\"sm_warps_most\":64,"
                     "\"limit\":\"registers\",\"waves\":2.5,\"tail\":0.5}}]}");
    const struct profile_file_launch *none = &p.row[0].launch, *l = &p.row[1].launch;
    assert_true(isnan(none->blocks) && isnan(none->sm_warps) && isnan(none->waves)); /* older */
    assert_null(none->limit);
    assert_true(l->blocks == 3072 && l->threads == 128 && l->registers == 48);
    assert_true(l->static_bytes == 512 && l->dynamic_bytes == 1024 && l->sm_blocks == 10);
    assert_true(l->sm_warps == 40 && l->sm_warps_most == 64 && l->waves == 2.5 && l->tail == 0.5);
    assert_string_equal(l->limit, "registers");
}

static void test_invalid_files(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"v\":2,\"rows\":[]}", "version 2, but this program reads version 1"},
        {"{\"v\":1}", "is not a profile"},
        {"[1]", "is not a profile"},
        {"{\"v\":1,\n\"rows\":[", "is not valid JSON (line 2); it may be truncated"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct profile_file p;
        fixture_write(f, "a/profile.json", cases[i].text);
        const char *path = fixture_path(f, "a/profile.json");
        assert_int_equal(profile_file_read(path, "a", &f->arena, &p), ST_FORMAT);
        if (!strstr(fail_message(), cases[i].words)) fail_msg("%s", fail_message());
        assert_non_null(strstr(fail_message(), "a/profile.json"));
    }
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_rows_are_read),
        WITH_FIXTURE(test_rows_are_joined_to_kernels),
        WITH_FIXTURE(test_work_is_of_all_kernels_of_a_node),
        WITH_FIXTURE(test_timeline_and_memory),
        WITH_FIXTURE(test_missing_fields),
        WITH_FIXTURE(test_counters_are_read),
        WITH_FIXTURE(test_launches_are_read),
        WITH_FIXTURE(test_invalid_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
