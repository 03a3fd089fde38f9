/* grid_wide.h - a grid as CS336 prints it, for --wide: one row a model; private to suite/. */
#ifndef SUITE_GRID_WIDE_H
#define SUITE_GRID_WIDE_H

#include "bench/bench_grid.h"
#include "present/sheet.h"

/* Adds a table with a row for each cell: the model's sizes, then the mean and the standard
 * deviation of forward, backward (alone), forward + backward, update and step, as far as measured.
 * A phase that does not fit in memory has no number; the note says what it would need. */
void grid_wide_add(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                   struct sheet *ret, struct arena *a);

#endif
