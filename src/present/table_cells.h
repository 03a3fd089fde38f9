/* table_cells.h - sets cells of a table: a number and its text.
 *
 * Most tables have a list of columns in which each column is one line: what it is called, what it
 * means, and what it shows of a row. The list is an X macro:
 *
 *     #define COLUMNS(X)                                                                          \
 *         X("rung", "rung", "what this rung adds", TEXT, r->name)                                 \
 *         X("ms_median", "ms", "median time of a step", NUMBER, !r->reason, 4, r->ms.median)
 *     static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};
 *     static void set_row(struct table_row row, const struct rung *r)
 *     {
 *         COLUMNS(TABLE_CELL)
 *     }
 *
 * What follows the kind of a column are the arguments of the macro TABLE_KIND, below. */
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
/* The number is in milliseconds, and its text in microseconds. */
void table_set_us(struct table *t, int row, int column, int digits, double ms, struct arena *a);
/* The standard deviation; the cell stays empty with only one sample. */
void table_set_std(struct table *t, int row, int column, const struct stats *s, struct arena *a);
void table_set_text(struct table *t, int row, int column, const char *text);
/* "1.5 GiB" */
void table_set_bytes(struct table *t, int row, int column, double bytes, struct arena *a);
/* "2.3e-4": a relative error, with two digits and an exponent. */
void table_set_error(struct table *t, int row, int column, double x, struct arena *a);
/* "487,000": rounded to an integer. */
void table_set_count(struct table *t, int row, int column, double x, struct arena *a);

/* --- lists of columns ------------------------------------------------------------------------- */

/* A row of a table that is being filled, from the first column on. */
struct table_row {
    struct table *table;
    int row, column;
    struct arena *arena;
};

static inline void table_next_row(struct table_row *r)
{
    r->row++;
    r->column = 0;
}

enum {
    TABLE_IS_TEXT = false,
    TABLE_IS_NUMBER = true,
    TABLE_IS_STD = true,
    TABLE_IS_BYTES = true,
    TABLE_IS_COUNT = true,
    TABLE_IS_ERROR = true,
    TABLE_IS_US = true,
    TABLE_IS_FORMAT = true,
    TABLE_IS_SHOWN = true
};

#define TABLE_COLUMN(ID, TITLE, HELP, KIND, ...) {ID, TITLE, HELP, TABLE_IS_##KIND},
#define TABLE_CELL(ID, TITLE, HELP, KIND, ...) \
    TABLE_##KIND(__VA_ARGS__);                 \
    row.column++;

/* Each sets a cell as the function of the same name above does. A cell is empty unless its value
 * is known (`known` is not evaluated further), and a text if it is NULL. */
#define TABLE_AT                       row.table, row.row, row.column
#define TABLE_TEXT(text)               table_set_text(TABLE_AT, text)
#define TABLE_NUMBER(known, digits, x) TABLE_IF(known, table_set(TABLE_AT, digits, x, row.arena))
#define TABLE_STD(known, stats)        TABLE_IF(known, table_set_std(TABLE_AT, stats, row.arena))
#define TABLE_BYTES(known, bytes)      TABLE_IF(known, table_set_bytes(TABLE_AT, bytes, row.arena))
#define TABLE_COUNT(known, x)          TABLE_IF(known, table_set_count(TABLE_AT, x, row.arena))
#define TABLE_ERROR(known, x)          TABLE_IF(known, table_set_error(TABLE_AT, x, row.arena))
/* Milliseconds, whose text is in microseconds. */
#define TABLE_US(known, digits, x)     TABLE_IF(known, table_set_us(TABLE_AT, digits, x, row.arena))
/* A text of its own beside the number. */
#define TABLE_SHOWN(known, text, x) \
    TABLE_IF(known, *table_at(TABLE_AT) = ((struct table_cell){text, x}))
/* A number as printf shows it. */
#define TABLE_FORMAT(known, format, x) TABLE_SHOWN(known, arena_printf(row.arena, format, x), x)
#define TABLE_IF(known, statement) \
    do                             \
        if (known) statement;      \
    while (0)

#endif
