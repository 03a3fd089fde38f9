/* warmup.h - the processes of cs336-warmup, and their tables; private to suite/. */
#ifndef SUITE_WARMUP_H
#define SUITE_WARMUP_H

#include "suite/grid_steps.h"
#include "suite/parts.h"

/* The tables of a process: of the cell, of each step, and of its start (grid_steps.h). */
enum { WARMUP_CELL, WARMUP_STEPS, WARMUP_START, WARMUP_TABLES };

/* A process: one model after one warm-up. */
struct warmup_process {
    const char *size;
    int warmup;
    int64_t batch; /* its batch_size */
    bool ran;      /* its sheet is complete */
    struct sheet sheet;
};

struct warmup_runs {
    struct warmup_process *process; /* in the order in which they ran */
    int n;
    const char **size;
    const int *warmup;
    int sizes, warmups, rounds;
    int64_t *batch; /* of each size */
    struct arena *a;
};

/* Adds the tables and the closing sentences: the statistics of each model, warm-up and phase over
 * all processes; the median time of each step over all processes of a model; what precedes the
 * second step. */
void warmup_view(const struct warmup_runs *x, struct sheet *ret);

#endif
