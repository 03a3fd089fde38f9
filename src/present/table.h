/* table.h - one table, four ways out: aligned text, Markdown, CSV and JSON. The rows are the same.
 *
 * Text and Markdown show a cell as people read it and leave out columns in which nothing stands; CSV
 * and JSON carry the number itself, under the column's id, and every column. */
#ifndef PRESENT_TABLE_H
#define PRESENT_TABLE_H

#include "base/base.h"

struct json_t;
struct str;

struct table_column {
    const char *id;    /* "ms_median": for programs */
    const char *title; /* "ms/iter": for people */
    const char *help;  /* one sentence */
    bool is_number;    /* aligned to the right */
};

struct table_cell {
    const char *text; /* NULL: nothing stands here */
    double number;    /* where the column is one of numbers */
};

struct table {
    const struct table_column *column;
    struct table_cell *cell; /* rows x columns */
    int columns, rows;
};

struct table_cell *table_at(const struct table *t, int row, int column);
/* True if some row has something in the column. */
bool table_column_used(const struct table *t, int column);
/* Where each row has a note (column "note", why it was not run) and so none a figure: the first of them. NULL: something was measured. */
const char *table_why_empty(const struct table *t);
/* Columns on a terminal that the text takes: characters, not bytes. */
int table_width(const char *text);

void table_print_text(const struct table *t, struct str *s);
void table_print_markdown(const struct table *t, struct str *s);
void table_print_csv(const struct table *t, struct str *s);
/* An array of one object for each row; the caller releases it with json_decref. */
struct json_t *table_json(const struct table *t);

#endif
