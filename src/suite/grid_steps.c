#include "suite/grid_steps.h"

/* clang-format off */
#define STEPS(X) \
    X("config", "config", "the cell of the grid", TEXT, cell) \
    X("phase", "phase", "part of a training step", TEXT, phase) \
    X("step", "step", "number of the step, 0: the first after opening", NUMBER, true, 0, step) \
    X("ms", "ms", "time of that part of that step", NUMBER, true, 4, ms)
/* A CPU has no kernels to make. */
#define STARTS(X) \
    X("config", "config", "the cell of the grid", TEXT, cell) \
    X("part", "part", "opening: plans, memory and weights; then the first step, all phases", TEXT, part) \
    X("ms", "ms", "all of it", NUMBER, true, 4, ms) \
    X("compile_ms", "compile", "kernels compiled, or read from the cache of compiled ones", NUMBER, setup > 0, 4, s->compile_ms) \
    X("load_ms", "load", "kernels loaded into the driver", NUMBER, setup > 0, 4, s->load_ms) \
    X("choose_ms", "choice", "matmul kernels chosen: the library asked, candidates timed", NUMBER, setup > 0, 4, s->choose_ms) \
    X("rest_ms", "the rest", "everything else", NUMBER, setup > 0, 4, ms > setup ? ms - setup : 0)
/* clang-format on */
const struct table_column step_columns[STEP_COLUMNS] = {STEPS(TABLE_COLUMN)};
const struct table_column start_columns[START_COLUMNS] = {STARTS(TABLE_COLUMN)};

void grid_step_set(struct table_row row, const char *cell, const char *phase, int step, double ms)
{
    STEPS(TABLE_CELL)
}

void grid_start_set(struct table_row row, const char *cell, const char *part, double ms,
                    const struct kernel_setup *s)
{
    double setup = s->compile_ms + s->load_ms + s->choose_ms;
    STARTS(TABLE_CELL)
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
        for (int i = 0; i < c->runs && c->lines >> l & 1; i++)
            grid_step_set((struct table_row){steps, (*step)++, 0, a}, name,
                          bench_line_name((enum bench_line)l), i, c->line[l].all_ms[i]);
    for (int i = 0; i < BENCH_STARTS; i++)
        grid_start_set((struct table_row){starts, (*start)++, 0, a}, name, part[i], c->start[i].ms,
                       &c->start[i].setup);
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
