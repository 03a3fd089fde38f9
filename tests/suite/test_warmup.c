/* The tables of cs336-warmup, from the results of made-up processes. */
#include "suite/warmup.h"

#include "present/table_cells.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

enum { STEPS = 2 };
static const struct table_column cell_columns[] = {
    {"config", "config", "", false}, {"phase", "phase", "", false}, {"note", "note", "", false}};

/* A process whose step 0 took `first` ms and all others `later` ms. */
static struct warmup_process process(int warmup, double first, double later,
                                     const struct kernel_setup *setup)
{
    struct warmup_process p = {.size = "small", .warmup = warmup, .ran = true};
    struct table *t = &sheet_add(&p.sheet, NULL, cell_columns, 3, 1, &arena)->table;
    table_set_text(t, 0, 0, "small");
    table_set_text(t, 0, 1, "step");
    t = &sheet_add(&p.sheet, NULL, step_columns, STEP_COLUMNS, warmup + STEPS, &arena)->table;
    for (int i = 0; i < t->rows; i++)
        grid_step_set((struct table_row){t, i, 0, &arena}, "small", "step", i, i ? later : first);
    t = &sheet_add(&p.sheet, NULL, start_columns, START_COLUMNS, BENCH_STARTS, &arena)->table;
    struct table_row row = {t, 0, 0, &arena};
    grid_start_set(row, "small", "opening", 500, &(struct kernel_setup){0});
    table_next_row(&row);
    grid_start_set(row, "small", "first step", first, setup);
    return p;
}

static double number(const struct table *t, int row, const char *id)
{
    int column = table_find(t, id);
    if (column < 0) fail_msg("no column %s", id);
    if (!table_at(t, row, column)->text) fail_msg("nothing in row %d, %s", row, id);
    return table_at(t, row, column)->number;
}

static struct sheet view_of(struct warmup_process *p, int n)
{
    static const char *sizes[] = {"small"};
    static const int warmups[] = {0, 2};
    struct warmup_runs x = {.process = p, .n = n, .a = &arena};
    struct sheet s = {.name = "cs336-warmup"};
    x.size = sizes, x.sizes = 1, x.warmup = warmups, x.warmups = 2, x.rounds = 2;
    warmup_view(&x, &s);
    assert_int_equal(s.tables, WARMUP_TABLES);
    return s;
}

/* Two processes for each of two warm-ups: rows are of both, steps are medians of all four. */
static void test_rounds_are_joined(void **state)
{
    (void)state;
    const struct kernel_setup setup = {.compile_ms = 60, .load_ms = 10, .choose_ms = 20};
    struct warmup_process p[] = {process(2, 100, 10, &setup), process(0, 110, 10, &setup),
                                 process(0, 120, 12, &setup), process(2, 110, 12, &setup)};
    struct sheet s = view_of(p, 4);
    const struct table *t = &s.table[0].table;
    assert_int_equal(t->rows, 2);
    assert_true(number(t, 0, "warmup") == 0 && number(t, 1, "warmup") == 2);
    assert_true(number(t, 0, "samples") == 4 && number(t, 0, "processes") == 2);
    assert_true(number(t, 0, "mean_ms") == (110 + 10 + 120 + 12) / 4.0);
    assert_true(number(t, 1, "mean_ms") == 11); /* step 0 is warm-up */
    assert_true(number(t, 0, "first_ms") == 115 && number(t, 1, "first_ms") == 105);
    double between = 100 * sqrt(2) / 11; /* of 10 and 12 */
    assert_true(fabs(number(t, 1, "between_percent") - between) < 1e-9);

    t = &s.table[1].table;
    assert_int_equal(t->rows, 4); /* the longest process ran steps 0 to 3 */
    assert_true(number(t, 0, "step") == 0 && number(t, 0, "ms") == 110);
    assert_true(number(t, 3, "step") == 3 && number(t, 3, "ms") == 11);
    assert_true(s.table[1].chart.linear && s.table[1].drawn_only);
    assert_string_equal(s.table[1].chart.x, "step");

    t = &s.table[2].table;
    assert_int_equal(t->rows, 4); /* opening and step 0, of the first process and of later ones */
    assert_true(number(t, 1, "ms") == 100 && number(t, 1, "compile_ms") == 60);
    assert_true(number(t, 1, "load_ms") == 10 && number(t, 1, "choose_ms") == 20);
    assert_true(number(t, 1, "rest_ms") == 10);
    assert_true(fabs(number(t, 3, "ms") - 340 / 3.0) < 1e-9);

    assert_int_equal(s.notes, 1);
    assert_string_equal(
        s.note[0],
        "small, step: step 0 takes 110 ms, 10.00 times as long as a step after 2 warm-up steps "
        "(11 ms); the mean is without warm-up 5.73 times as high; processes with the same warm-up "
        "differ by up to 20 %. Until the end of step 0 of the first process, kernels took 60 ms to "
        "compile (or to read from the cache), 10 ms to load and 20 ms to choose.");
}

/* A process that could not run has a row with its reason, and no steps. */
static void test_a_reason_is_a_row(void **state)
{
    (void)state;
    struct warmup_process p = {.size = "small", .warmup = 2, .ran = true};
    struct table *t = &sheet_add(&p.sheet, NULL, cell_columns, 3, 1, &arena)->table;
    table_set_text(t, 0, 2, "needs 60 GiB of memory");
    (void)sheet_add(&p.sheet, NULL, step_columns, STEP_COLUMNS, 0, &arena);
    (void)sheet_add(&p.sheet, NULL, start_columns, START_COLUMNS, 0, &arena);
    struct sheet s = view_of(&p, 1);
    assert_int_equal(s.table[0].table.rows, 1);
    assert_string_equal(table_why_empty(&s.table[0].table), "needs 60 GiB of memory");
    assert_true(s.table[1].table.rows == 0 && s.notes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_rounds_are_joined, release),
        cmocka_unit_test_teardown(test_a_reason_is_a_row, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
