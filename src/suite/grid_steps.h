/* grid_steps.h - every single step of a grid, for --each-step; private to suite/. */
#ifndef SUITE_GRID_STEPS_H
#define SUITE_GRID_STEPS_H

#include "bench/bench_grid.h"
#include "present/sheet.h"
#include "present/table_cells.h"

/* Columns of both tables, by id and index. */
enum { STEP_CELL, STEP_PHASE, STEP_NUMBER, STEP_MS, STEP_COLUMNS };
enum { START_CELL, START_PART, START_MS, START_COMPILE, START_LOAD, START_CHOOSE, START_REST };
enum { START_COLUMNS = START_REST + 1 };
extern const struct table_column step_columns[STEP_COLUMNS], start_columns[START_COLUMNS];

/* Adds two tables. "Each step": a row for each line of each step, from the very first on, drawn
 * over the number of the step. "Before the second step": what opening a cell and its first step
 * took, of which compiling, loading and choosing kernels. A cell that did not run has no rows. */
void grid_steps_add(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                    struct sheet *ret, struct arena *a);
/* Draws the first of these tables; its rows are set. */
void grid_steps_draw(struct sheet_table *t);
/* One row of each. The setup is part of `ms`. */
void grid_step_set(struct table_row row, const char *cell, const char *phase, int step, double ms);
void grid_start_set(struct table_row row, const char *cell, const char *part, double ms,
                    const struct kernel_setup *s);

#endif
