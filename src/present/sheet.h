/* sheet.h - the result of `strobe bench` as a file, bench.json: tables with numbers and texts,
 * how to draw them, and notes. docs/FORMATS.md describes the fields; `strobe report` prints
 * tables and charts of it. */
#ifndef PRESENT_SHEET_H
#define PRESENT_SHEET_H

#include "base/arena.h"
#include "present/table.h"

struct json_t;
struct markup;
struct str;

enum { SHEET_VERSION = 1, SHEET_LABELS = 8, SHEET_TABLES = 8, SHEET_NOTES = 16 };

/* How a table is drawn: a bar for each row, curves over a column, or texts side by side, which only
 * the page and the file have. Columns are named by ids. */
enum sheet_chart_kind { SHEET_NO_CHART, SHEET_BARS, SHEET_LINES, SHEET_TEXTS, SHEET_KINDS };
/* Of the column y. */
enum sheet_unit {
    SHEET_MS,
    SHEET_BYTES,
    SHEET_GB_PER_S,
    SHEET_GFLOP_PER_S,
    SHEET_NS,
    SHEET_US,
    SHEET_UNITS
};
struct sheet_chart {
    enum sheet_chart_kind kind;
    const char *title;
    const char *label[SHEET_LABELS]; /* columns whose texts name a bar or a curve */
    int labels;
    const char *x,
        *panel; /* of curves; panel: one picture for each text of that column, NULL: one */
    const char *y, *spread; /* spread: the whisker of a bar; NULL: none */
    enum sheet_unit unit;
    bool linear; /* x of curves is linear, from 0; otherwise logarithmic */
};

struct sheet_table {
    const char *title; /* NULL: none */
    struct table table;
    struct sheet_chart chart;
    bool drawn_only; /* too long to read: text and Markdown name it and leave it out */
};

struct sheet {
    const char *name;                           /* "cs336-e2e" of a suite, or "bench" */
    const char *title;                          /* a sentence */
    const char *text;                           /* what it reproduces; NULL: nothing */
    const char *device, *date, *version, *path; /* path: the file it was read from; NULL: none */
    const char *commit, *command;               /* of the program that wrote it; NULL: unknown */
    struct sheet_table table[SHEET_TABLES];
    int tables;
    const char *note[SHEET_NOTES];
    int notes;
};

/* Adds a table with empty cells; columns must outlive the sheet. */
struct sheet_table *sheet_add(struct sheet *s, const char *title, const struct table_column *column,
                              int columns, int rows, struct arena *a);
/* Draws the table as bars. Fewer labels end with NULL. */
void sheet_bars(struct sheet_table *t, const char *title, const char *y, const char *spread,
                const char *const label[SHEET_LABELS]);
void sheet_note(struct sheet *s, const char *text);

/* Prints the tables one below the other with `print`, and titles and notes with `words`, which
 * makes text of files harmless in that form (visible_append, table_markdown_text); NULL: without
 * them. */
void sheet_print(const struct sheet *s, void (*print)(const struct table *t, struct str *out),
                 void (*words)(struct str *out, const char *text), struct str *out);
/* The caller releases it with json_decref. */
struct json_t *sheet_json(const struct sheet *s);
/* Writes the sheet to `path`; makes the folder if needed. */
enum status sheet_write(const struct sheet *s, const char *path);

/* Whether a file of JSON is a sheet, of any version. If the file cannot be read, or is not JSON,
 * that is the error and *ret is false. */
enum status sheet_is(const char *path, bool *ret);
enum status sheet_read(const char *path, struct arena *a, struct sheet *ret);

/* The curves of a table with SHEET_LINES, and the bars of one with SHEET_BARS, each as a separate
 * SVG (plot.h). */
void sheet_print_curves(const struct sheet_table *t, struct markup *out, struct arena *a);
void sheet_print_bars(const struct sheet_table *t, struct markup *out, struct arena *a);

#endif
