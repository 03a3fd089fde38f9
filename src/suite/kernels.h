/* kernels.h - the longest kernels of profiles as one table; private to suite/. */
#ifndef SUITE_KERNELS_H
#define SUITE_KERNELS_H

#include "suite/profiled.h"

struct kernel_lines {
    struct sheet_table *table;
    int n, most, top; /* rows so far and at most; kernels of a phase */
    struct arena *a;
};

/* A table of the sheet whose first column is `subject`, with room for so many phases. */
void kernel_lines_open(struct kernel_lines *l, struct sheet *s, const char *title,
                       const struct table_column *subject, int phases, int top, struct arena *a);
/* The `top` longest of these phases, called `phase`, and the idle time. */
void kernel_lines_add(struct kernel_lines *l, const char *subject, int64_t T, const char *phase,
                      unsigned phases, const struct profile *p);
void kernel_lines_close(struct kernel_lines *l);

#endif
