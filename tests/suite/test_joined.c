/* Two profiles in one table: instances of one kernel are one row, and shares add up to 100 %. */
#include "suite/joined.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct arena arena;
static const char *const sides[] = {"slow", "flash"};

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct profile_row row(enum op op, const char *full, const char *name, double ms)
{
    return (struct profile_row){.op = op,
                                .phase = PHASE_FORWARD,
                                .family = FAMILY_MATMUL,
                                .variant = "cublaslt",
                                .shape = full,
                                .device_kernel = full,
                                .device_short = name,
                                .runs = 4,
                                .ms = ms};
}

static double number(const struct table *t, int at, const char *id)
{
    for (int c = 0; c < t->columns; c++)
        if (!strcmp(t->column[c].id, id))
            return table_at(t, at, c)->text ? table_at(t, at, c)->number : NAN;
    fail_msg("no column %s", id);
    return 0;
}

static const char *text(const struct table *t, int at, const char *id)
{
    for (int c = 0; c < t->columns; c++)
        if (!strcmp(t->column[c].id, id)) return table_at(t, at, c)->text;
    fail_msg("no column %s", id);
    return NULL;
}

static struct table joined(enum joined_by by)
{
    struct profile_row before[] = {row(OP_MATMUL, "gemm<64>", "gemm", 3),
                                   row(OP_MATMUL, "gemm<128>", "gemm", 2),
                                   row(OP_SOFTMAX, "softmax<32>", "softmax", 4)};
    struct profile_row after[] = {row(OP_MATMUL, "gemm<64>", "gemm", 3),
                                  row(OP_ATTENTION, "flash<32>", "flash", 1)};
    struct profile slow = {.steps = 2, .row = before, .rows = 3};
    struct profile flash = {.steps = 2, .row = after, .rows = 2};
    slow.mean_ms[PHASE_FORWARD] = 10, slow.idle_ms[PHASE_FORWARD] = 1;
    flash.mean_ms[PHASE_FORWARD] = 5, flash.idle_ms[PHASE_FORWARD] = 1;
    struct joined j;
    struct sheet s = {.name = "attention-block"};
    joined_init(&j, by, &arena);
    joined_add(&j, 0, 100, &slow);
    joined_add(&j, 1, 100, &flash);
    joined_table(&j, &s, sides);
    return s.table[0].table;
}

static void test_by_kernel(void **state)
{
    (void)state;
    struct table t = joined(JOINED_KERNEL);
    static const char *const names[] = {"gemm", "softmax", "flash", "idle"};
    double slow = 0, flash = 0;
    for (int i = 0; i < 4; i++) {
        assert_string_equal(text(&t, i, "kernel"), names[i]);
        assert_string_equal(text(&t, i, "phase"), "forward");
        if (isfinite(number(&t, i, "slow_percent"))) slow += number(&t, i, "slow_percent");
        if (isfinite(number(&t, i, "flash_percent"))) flash += number(&t, i, "flash_percent");
    }
    assert_true(fabs(slow - 100) < 1e-9 && fabs(flash - 100) < 1e-9);
    assert_true(number(&t, 0, "slow_ms") == 5 && number(&t, 0, "slow_calls") == 4);
    assert_true(number(&t, 0, "flash_ms") == 3 && number(&t, 0, "flash_calls") == 2);
    assert_string_equal(text(&t, 0, "before_after"), "50.0 → 60.0");
    assert_string_equal(text(&t, 1, "before_after"), "40.0 → -");
    assert_true(isnan(number(&t, 2, "slow_ms")));
    assert_string_equal(text(&t, 4, "phase"), "backward"); /* nothing ran: only idle */
    assert_int_equal(t.rows, 5);
}

static void test_by_operation(void **state)
{
    (void)state;
    struct table t = joined(JOINED_OP);
    assert_string_equal(text(&t, 0, "operation"), "MATMUL");
    assert_true(number(&t, 0, "slow_ms") == 5);
    assert_string_equal(text(&t, 2, "operation"), "ATTENTION");
}

/* Launches, parts of the host and copies, each per step. */
static void test_host(void **state)
{
    (void)state;
    const struct backend *null = backend_find("null");
    struct engine e = {.backend = null};
    struct profile_deed deed[] = {{-1, RANDOM_STEP_WAITS, 0, {0, 3000000}},
                                  {-1, RANDOM_STEP_WAITS, 1, {5000000, 6000000}},
                                  {7, RANDOM_STEP_STARTS, 1, {4000000, 4500000}}};
    struct activity activity[] = {
        {.kind = ACTIVITY_KERNEL, .name = "gemm", .end_ns = 9},
        {.kind = ACTIVITY_COPY, .name = "copy device to host", .end_ns = 2000000, .bytes = 64}};
    int64_t begin[] = {0, 1}, end[] = {1, 2};
    struct profile p = {.engine = &e, .steps = 2};
    p.record = (struct profile_record){
        .activity = activity, .begin = begin, .end = end, .deed = deed, .deeds = 3};
    struct host_lines h = {.a = &arena};
    struct sheet s = {.name = "attention-block"};
    host_lines_add(&h, sides[0], 100, &p);
    host_lines_table(&h, &s);
    const struct table *t = &s.table[0].table;
    assert_int_equal(t->rows, 3);
    assert_string_equal(text(t, 0, "name"), "wait");
    assert_true(number(t, 0, "calls") == 1 && number(t, 0, "ms") == 2);
    assert_string_equal(text(t, 1, "kind"), "API call");
    assert_true(number(t, 1, "calls") == 0.5 && number(t, 1, "us") == 500);
    assert_string_equal(text(t, 2, "name"), "copy device to host");
    assert_true(number(t, 2, "bytes") == 32 && number(t, 2, "ms") == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_by_kernel, release),
        cmocka_unit_test_teardown(test_by_operation, release),
        cmocka_unit_test_teardown(test_host, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
