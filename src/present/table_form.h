/* table_form.h - the output forms of commands that print tables. */
#ifndef PRESENT_TABLE_FORM_H
#define PRESENT_TABLE_FORM_H

#include "base/opt.h"
#include "present/table_cells.h"

struct arena;
struct str;

struct table_form {
    bool json, csv, markdown;
};

/* Rows for the option table of a command. */
#define TABLE_FORM_OPTIONS(form)                                            \
    {"json", OPT_FLAG, &(form)->json, NULL, "as one JSON object"},          \
        {"csv", OPT_FLAG, &(form)->csv, NULL, "the table alone, as CSV"},   \
    {                                                                       \
        "markdown", OPT_FLAG, &(form)->markdown, NULL, "tables as Markdown" \
    }

/* ST_USAGE if more than one form is given. */
enum status table_form_check(const struct table_form *f);
/* Prints the table as text, Markdown or CSV. The caller prints JSON. */
void table_form_print(const struct table_form *f, const struct table *t, struct str *s);
/* Prints a note below a table in text and Markdown; nothing in CSV and JSON. */
void table_form_note(const struct table_form *f, const char *text, struct str *s);

/* Sets FLOP/s in a column of GFLOP/s. If table_form_tera is called before, texts of such columns
 * are in TFLOP/s; CSV and JSON are always in GFLOP/s. */
void table_form_set_flops(struct table *t, int row, int column, double per_second, struct arena *a);
void table_form_tera(struct table *t, struct arena *a);
/* A column of a list (table_cells.h) with FLOP/s. */
enum { TABLE_IS_FLOPS = true };
#define TABLE_FLOPS(known, x) TABLE_IF(known, table_form_set_flops(TABLE_AT, x, row.arena))
struct sheet;
/* Prints all tables of a sheet, with titles and notes except in CSV. The caller prints JSON. */
void table_form_sheet(const struct table_form *f, const struct sheet *x, struct str *s);

/* Prints a JSON object as all --json options do, and releases it. */
void json_print(struct json_t *j, struct str *s);

#endif
