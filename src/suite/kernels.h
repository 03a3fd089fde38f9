/* kernels.h - the longest kernels of profiles as one table; private to suite/. */
#ifndef SUITE_KERNELS_H
#define SUITE_KERNELS_H

#include "suite/profiled.h"

struct kernel_lines {
    struct sheet_table *table;
    int n, most, top; /* rows so far and at most; kernels of a phase */
    struct arena *a;
};

/* Adds a table to the sheet with first column `subject` and space for `phases` phases. */
void kernel_lines_open(struct kernel_lines *l, struct sheet *s, const char *title,
                       const struct table_column *subject, int phases, int top, struct arena *a);
/* Adds the `top` longest kernels of these phases, named `phase`, and the idle time. */
void kernel_lines_add(struct kernel_lines *l, const char *subject, int64_t T, const char *phase,
                      unsigned phases, const struct profile *p);
void kernel_lines_close(struct kernel_lines *l);

#endif
