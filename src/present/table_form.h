/* table_form.h - the ways in which the measuring commands print their tables. */
#ifndef PRESENT_TABLE_FORM_H
#define PRESENT_TABLE_FORM_H

#include "base/opt.h"
#include "present/table_cells.h"

struct arena;
struct str;

struct table_form {
    bool json, csv, markdown;
};

/* Rows for a command's table of options. */
#define TABLE_FORM_OPTIONS(form)                                            \
    {"json", OPT_FLAG, &(form)->json, NULL, "as one JSON object"},          \
        {"csv", OPT_FLAG, &(form)->csv, NULL, "the table alone, as CSV"},   \
    {                                                                       \
        "markdown", OPT_FLAG, &(form)->markdown, NULL, "tables as Markdown" \
    }

/* More than one of them is ST_USAGE. */
enum status table_form_check(const struct table_form *f);
/* The table as text, Markdown or CSV. JSON is the caller's. */
void table_form_print(const struct table_form *f, const struct table *t, struct str *s);
/* A line for people; nothing where programs read. */
void table_form_note(const struct table_form *f, const char *text, struct str *s);

/* A rate of arithmetic in a column that has it in GFLOP/s. For programs it is always that; for people table_form_tera
 * makes TFLOP/s of all such columns. */
void table_form_set_flops(struct table *t, int row, int column, double per_second, struct arena *a);
void table_form_tera(struct table *t, struct arena *a);
struct sheet;
/* All of its tables; with titles and notes but as CSV. JSON is the caller's. */
void table_form_sheet(const struct table_form *f, const struct sheet *x, struct str *s);

/* Prints the object and releases it. */
void json_print(struct json_t *j, struct str *s);

#endif
