/* grid.h - suites that are grids of cells and nothing else, as data; and the table of any grid. */
#ifndef SUITE_GRID_H
#define SUITE_GRID_H

#include "suite/parts.h"

enum { SUITE_GRID_AXES = 4 };

struct suite_grid {
    const struct suite_size *sizes, *small_sizes;
    const char *words;                                               /* keys of all cells */
    const char *axis[SUITE_GRID_AXES], *small_axis[SUITE_GRID_AXES]; /* "dtype=float32,bfloat16" */
    const char *phase, *warmup;
    int steps;
    int64_t vocab;
    const struct suite_small *small; /* what is smaller on a CPU, SUITE_SMALLS of them */
    const char *note;                /* how to read it; NULL: as it stands */
};

enum status suite_run_grid(const struct suite *s, const struct suite_request *r, struct sheet *ret,
                           struct arena *a);
/* A row for each line of each cell that ran, and one for each that did not. */
void grid_table(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                struct sheet *ret, struct arena *a);
/* How the cells took turns, in a sentence. */
const char *grid_order_words(enum bench_order order);
/* Runs a grid with progress and leaves its table and words. */
enum status grid_run(const struct bench_grid *g, const struct suite_request *r, struct sheet *ret,
                     struct arena *a);

#endif
