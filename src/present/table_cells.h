/* table_cells.h - sets cells of a table: a number and its text. */
#ifndef PRESENT_TABLE_CELLS_H
#define PRESENT_TABLE_CELLS_H

#include "present/table.h"

struct arena;
struct stats;

/* A table of empty cells. */
struct table table_new(const struct table_column *column, int columns, int rows, struct arena *a);
/* In all that follow, a number that is not finite leaves the cell empty. */
void table_set_as(struct table *t, int row, int column, double x, const char *text);
/* A number with `digits` significant digits and no exponent; integer digits are not rounded. */
void table_set(struct table *t, int row, int column, int digits, double x, struct arena *a);
/* The standard deviation; the cell stays empty with only one sample. */
void table_set_std(struct table *t, int row, int column, const struct stats *s, struct arena *a);
void table_set_text(struct table *t, int row, int column, const char *text);
/* "1.5 GiB" */
void table_set_bytes(struct table *t, int row, int column, double bytes, struct arena *a);
/* "2.3e-4": a relative error, with two digits and an exponent. */
void table_set_error(struct table *t, int row, int column, double x, struct arena *a);
/* "487,000": rounded to an integer. */
void table_set_count(struct table *t, int row, int column, double x, struct arena *a);

#endif
