/* Two profiles in one table: instances of one kernel are one row, and shares add up to 100 %. What
 * the host did, and what its threads waited for. */
#include "suite/host_lines.h"
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
                                .per_step = 2,
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
    struct profile_action action[] = {{-1, RANDOM_STEP_WAITS, 0, {0, 3000000}},
                                      {-1, RANDOM_STEP_WAITS, 1, {5000000, 6000000}},
                                      {7, RANDOM_STEP_STARTS, 1, {4000000, 4500000}}};
    struct activity activity[] = {
        {.kind = ACTIVITY_KERNEL, .name = "gemm", .end_ns = 9},
        {.kind = ACTIVITY_COPY, .name = "copy device to host", .end_ns = 2000000, .bytes = 64}};
    int64_t begin[] = {0, 1}, end[] = {1, 2};
    struct profile p = {.engine = &e, .steps = 2};
    p.record = (struct profile_record){
        .activity = activity, .begin = begin, .end = end, .action = action, .actions = 3};
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

/* A step of the host: parts of 1, 5 and 4 ms, with launches in between, and calls of the API. */
static struct profile_action parts[] = {{-1, RANDOM_STEP_FEEDS, 0, {0, 1000000}},
                                        {-1, RANDOM_STEP_STARTS, 0, {1000000, 6000000}},
                                        {3, RANDOM_STEP_STARTS, 0, {1100000, 1200000}},
                                        {4, RANDOM_STEP_STARTS, 0, {1300000, 1400000}},
                                        {-1, RANDOM_STEP_WAITS, 0, {6000000, 10000000}}};
static const struct api_call calls[] = {{"cuLaunchKernel", 0, 1110000, 1120000},
                                        {"cuLaunchKernel", 0, 1310000, 1320000},
                                        {"cuMemFree", 1, 2000000, 2500000},
                                        /* it begins before its part, by another clock */
                                        {"cuStreamSynchronize", 0, 5999990, 8999990},
                                        {"cuLaunchKernel", 0, 12000000, 12000100}};
static const struct api_call opening[] = {{"cuMemAlloc", 0, 10, 1000010},
                                          {"cuMemAlloc", 0, 20, 2000020}};
static struct engine gpu;

static struct profile of_calls(void)
{
    static int64_t none[] = {0};
    struct profile p = {.engine = &gpu, .steps = 1};
    static struct backend device;
    gpu.backend = &device;
    p.step_ms.mean = 7; /* of the device, which the host does not share */
    p.record = (struct profile_record){.begin = none,
                                       .end = none,
                                       .action = parts,
                                       .actions = COUNT_OF(parts),
                                       .api = calls,
                                       .apis = COUNT_OF(calls),
                                       .opening = opening,
                                       .openings = COUNT_OF(opening)};
    return p;
}

/* Calls are listed by the part of a step and the thread; those between steps are not. */
static void test_calls(void **state)
{
    (void)state;
    static const struct {
        const char *name, *within, *thread;
        double calls, ms;
    } want[] = {{"cuLaunchKernel", "launch the step", "main", 2, 0.02},
                {"cuMemFree", "launch the step", "thread 1", 1, 0.5},
                {"cuStreamSynchronize", "wait", "main", 1, 3},
                {"cuMemAlloc", "before, in all", "main", 2, 3}};
    struct profile p = of_calls();
    struct host_lines h = {.a = &arena};
    struct sheet s = {.name = "attention-block"};
    host_lines_add(&h, sides[0], 100, &p);
    host_lines_table(&h, &s);
    const struct table *t = &s.table[0].table;
    assert_int_equal(t->rows, 3 + COUNT_OF(want)); /* and three parts */
    for (int i = 0; i < COUNT_OF(want); i++) {
        assert_string_equal(text(t, 3 + i, "kind"), "API call");
        assert_string_equal(text(t, 3 + i, "name"), want[i].name);
        assert_string_equal(text(t, 3 + i, "within"), want[i].within);
        assert_string_equal(text(t, 3 + i, "thread"), want[i].thread);
        assert_true(number(t, 3 + i, "calls") == want[i].calls);
        assert_true(fabs(number(t, 3 + i, "ms") - want[i].ms) < 1e-9);
    }
}

static struct table waits_of(const struct profile *p)
{
    struct host_lines h = {.a = &arena};
    struct sheet s = {.name = "attention-block"};
    host_waits_add(&h, sides[0], 100, p);
    host_waits_table(&h, &s);
    return s.table[0].table;
}

static void is_wait(const struct table *t, int row, const char *thread, const char *what, double ms,
                    double percent)
{
    assert_string_equal(text(t, row, "thread"), thread);
    assert_string_equal(text(t, row, "what"), what);
    assert_true(fabs(number(t, row, "ms") - ms) < 1e-9);
    assert_true(fabs(number(t, row, "percent") - percent) < 1e-9);
}

/* By the record of calls, else by the parts of a step. */
static void test_waits_for_a_device(void **state)
{
    (void)state;
    struct profile p = of_calls();
    struct table t = waits_of(&p);
    assert_int_equal(t.rows, 3);
    is_wait(&t, 0, "main", "waits for the device in cuStreamSynchronize", 3, 30);
    is_wait(&t, 1, "main", "works", 7, 70);
    is_wait(&t, 2, "thread 1", "works", 0.5, 5);
    p.record.apis = 0;
    t = waits_of(&p);
    assert_int_equal(t.rows, 2);
    is_wait(&t, 0, "main", "waits for the device", 4, 40);
    is_wait(&t, 1, "main", "works", 6, 60);
}

/* Two threads of a CPU; a library's threads are not seen. */
static void test_waits_of_threads(void **state)
{
    (void)state;
    static const struct profile_thread_span work[] = {
        {.thread = 0, .span = {0, 4000000}},
        {.thread = 1, .span = {0, 1000000}},
        {.unseen = true, .span = {4000000, 6000000}},
        {.thread = 1, .step = 1, .span = {0, 9000000}}};
    struct profile p = {.engine = &gpu, .steps = 1, .threads = 2};
    p.step_ms.mean = 10;
    p.record = (struct profile_record){.thread_span = work, .thread_spans = COUNT_OF(work)};
    struct table t = waits_of(&p);
    assert_int_equal(t.rows, 5);
    is_wait(&t, 0, "main", "works on kernels", 6, 60);
    is_wait(&t, 1, "main", "other work, and waits for threads", 4, 40);
    is_wait(&t, 2, "thread 1", "works on kernels", 1, 10);
    is_wait(&t, 3, "thread 1", "unknown: a library's kernel runs", 2, 20);
    is_wait(&t, 4, "thread 1", "waits for work", 7, 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_by_kernel, release),
        cmocka_unit_test_teardown(test_by_operation, release),
        cmocka_unit_test_teardown(test_host, release),
        cmocka_unit_test_teardown(test_calls, release),
        cmocka_unit_test_teardown(test_waits_for_a_device, release),
        cmocka_unit_test_teardown(test_waits_of_threads, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
