/* table_cells.h - what stands in a cell of a table: numbers as people read them, beside what they are. */
#ifndef PRESENT_TABLE_CELLS_H
#define PRESENT_TABLE_CELLS_H

#include "present/table.h"

struct arena;
struct stats;

/* A number, shown with so many significant digits, never with an exponent; whole numbers in full. */
void table_set(struct table *t, int row, int column, int digits, double x, struct arena *a);
/* The standard deviation; nothing where there is but one sample. */
void table_set_std(struct table *t, int row, int column, const struct stats *s, struct arena *a);
void table_set_text(struct table *t, int row, int column, const char *text);
/* "1.5 GiB" */
void table_set_bytes(struct table *t, int row, int column, int64_t bytes, struct arena *a);
/* "487,000": to the nearest whole number */
void table_set_count(struct table *t, int row, int column, double x, struct arena *a);

#endif
