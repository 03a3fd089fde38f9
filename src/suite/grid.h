/* grid.h - suites that consist of one grid of cells, as data; and running any grid. */
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
    const struct suite_small *small; /* SUITE_SMALLS reductions on a CPU */
    const char *note;                /* how to read the table; NULL: no note */
};

enum status suite_run_grid(const struct suite_request *r, struct sheet *ret, struct arena *a);
/* Runs a grid with progress, and adds its table and notes to the sheet. */
enum status grid_run(const struct bench_grid *g, const struct suite_request *r, struct sheet *ret,
                     struct arena *a);

#endif
