#include "suite/grid_steps.h"

#include "present/table_cells.h"

/* clang-format off */
const struct table_column step_columns[STEP_COLUMNS] = {
    [STEP_CELL] = {"config", "config", "the cell of the grid", false},
    [STEP_PHASE] = {"phase", "phase", "part of a training step", false},
    [STEP_NUMBER] = {"step", "step", "number of the step, 0: the first after opening", true},
    [STEP_MS] = {"ms", "ms", "time of that part of that step", true},
};
const struct table_column start_columns[START_COLUMNS] = {
    [START_CELL] = {"config", "config", "the cell of the grid", false},
    [START_PART] = {"part", "part", "opening: plans, memory and weights; then the first step, all phases", false},
    [START_MS] = {"ms", "ms", "all of it", true},
    [START_COMPILE] = {"compile_ms", "compile", "kernels compiled, or read from the cache of compiled ones", true},
    [START_LOAD] = {"load_ms", "load", "kernels loaded into the driver", true},
    [START_CHOOSE] = {"choose_ms", "choice", "matmul kernels chosen: the library asked, candidates timed", true},
    [START_REST] = {"rest_ms", "the rest", "everything else", true},
};
/* clang-format on */

void grid_start_set(struct table *t, int row, const char *cell, const char *part, double ms,
                    const struct kernel_setup *s, struct arena *a)
{
    double setup = s->compile_ms + s->load_ms + s->choose_ms;
    table_set_text(t, row, START_CELL, cell);
    table_set_text(t, row, START_PART, part);
    table_set(t, row, START_MS, 4, ms, a);
    if (!(setup > 0)) return; /* a CPU has no kernels to make */
    table_set(t, row, START_COMPILE, 4, s->compile_ms, a);
    table_set(t, row, START_LOAD, 4, s->load_ms, a);
    table_set(t, row, START_CHOOSE, 4, s->choose_ms, a);
    table_set(t, row, START_REST, 4, ms > setup ? ms - setup : 0, a);
}

void grid_steps_draw(struct sheet_table *t)
{
    sheet_bars(t, "time of each step, from the first", "ms", NULL,
               (const char *[SHEET_LABELS]){"phase"});
    t->chart.kind = SHEET_LINES;
    t->chart.x = "step";
    t->chart.panel = "config";
    t->chart.linear = true;
    t->drawn_only = true;
}

/* Adds to both tables; *step and *start are their next rows. */
static void add_cell(struct table *steps, int *step, struct table *starts, int *start,
                     const struct bench_cell *c, const char *name, struct arena *a)
{
    static const char *const part[BENCH_STARTS] = {"opening", "first step"};
    for (int l = 0; l < BENCH_LINES; l++)
        for (int i = 0; i < c->runs && c->lines >> l & 1; i++) {
            int row = (*step)++;
            table_set_text(steps, row, STEP_CELL, name);
            table_set_text(steps, row, STEP_PHASE, bench_line_name((enum bench_line)l));
            table_set(steps, row, STEP_NUMBER, 0, i, a);
            table_set(steps, row, STEP_MS, 4, c->line[l].all_ms[i], a);
        }
    for (int i = 0; i < BENCH_STARTS; i++)
        grid_start_set(starts, (*start)++, name, part[i], c->start[i].ms, &c->start[i].setup, a);
}

void grid_steps_add(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                    struct sheet *ret, struct arena *a)
{
    int rows = 0;
    for (int i = 0; i < cells; i++) rows += cell[i].runs * __builtin_popcount(cell[i].lines);
    struct sheet_table *steps = sheet_add(ret, "Each step", step_columns, STEP_COLUMNS, rows, a);
    struct sheet_table *starts = sheet_add(ret, "Before the second step", start_columns,
                                           START_COLUMNS, cells * BENCH_STARTS, a);
    int step = 0, start = 0;
    for (int i = 0; i < cells; i++)
        if (cell[i].runs)
            add_cell(&steps->table, &step, &starts->table, &start, &cell[i],
                     bench_grid_name(g, i, a), a);
    starts->table.rows = start;
    grid_steps_draw(steps);
}
