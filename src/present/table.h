/* table.h - a table that can be printed as aligned text, Markdown, CSV and JSON.
 *
 * Text and Markdown print the texts of cells and leave out empty columns. CSV and JSON contain the
 * numbers, under the ids of the columns, and all columns. In text and Markdown, control characters
 * are made visible (base/visible.h). In CSV, a text that begins like a formula gets an
 * apostrophe. */
#ifndef PRESENT_TABLE_H
#define PRESENT_TABLE_H

#include "base/base.h"

struct json_t;
struct str;

struct table_column {
    const char *id;    /* "ms_median": in CSV and JSON */
    const char *title; /* "ms/iter": in text */
    const char *help;  /* one sentence */
    bool is_number;    /* aligned to the right */
};

struct table_cell {
    const char *text; /* NULL: empty */
    double number;    /* if the column has numbers */
};

struct table {
    const struct table_column *column;
    struct table_cell *cell; /* rows x columns */
    int columns, rows;
};

struct table_cell *table_at(const struct table *t, int row, int column);
/* The column with this id; -1: there is none, or `id` is NULL. */
int table_find(const struct table *t, const char *id);
/* The text of its cell; "": the cell is empty, or there is no such column. */
const char *table_text_of(const struct table *t, int row, const char *id);
/* Whether the column has a nonempty cell. */
bool table_column_used(const struct table *t, int column);
/* If every row has a note why it was not measured (column "note"), returns the first note; else
 * NULL. */
const char *table_why_empty(const struct table *t);
/* The width of a text on a terminal in characters; the width of a column including its title. */
int table_width(const char *text);
int table_column_width(const struct table *t, int column);

void table_print_text(const struct table *t, struct str *s);
void table_print_markdown(const struct table *t, struct str *s);
/* Appends one line of text with all Markdown and HTML escaped; a line break becomes a blank. */
void table_markdown_text(struct str *s, const char *text);
/* Numbers have full precision; NAN and cells without a text are empty. */
void table_print_csv(const struct table *t, struct str *s);
/* An array of one object for each row; the caller releases it with json_decref. */
struct json_t *table_json(const struct table *t);

#endif
