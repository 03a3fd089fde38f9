/* table.h - one table, four ways out: aligned text, Markdown, CSV and JSON. The rows are the same.
 *
 * Text and Markdown print the text of a cell and leave out empty columns; CSV and JSON have the
 * number itself, under the id of the column, and all columns. Text and Markdown show what would
 * control a terminal (base/visible.h); a text of CSV that begins like a formula gets an
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

/* A list of columns as an X macro with rows X(ID, "id", "title", "help", is_number) makes both
 * the enum of indices, enum { LIST(TABLE_ID) COLUMNS }, and the array {LIST(TABLE_COLUMN)}. */
#define TABLE_ID(ID, ...)     ID,
#define TABLE_COLUMN(ID, ...) [ID] = {__VA_ARGS__},

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
/* Whether any cell of the column is not empty. */
bool table_column_used(const struct table *t, int column);
/* If every row has a note (column "note", the reason why it was not measured), the first note;
 * otherwise NULL: something was measured. */
const char *table_why_empty(const struct table *t);
/* Width of a text on a terminal: characters, not bytes; of a column with its title. */
int table_width(const char *text);
int table_column_width(const struct table *t, int column);

void table_print_text(const struct table *t, struct str *s);
void table_print_markdown(const struct table *t, struct str *s);
/* One line of text in which nothing is Markdown or HTML; a line break becomes a blank. */
void table_markdown_text(struct str *s, const char *text);
/* Numbers in full; NAN and what has no text are empty. */
void table_print_csv(const struct table *t, struct str *s);
/* An array of one object for each row; the caller releases it with json_decref. */
struct json_t *table_json(const struct table *t);

#endif
