/* sheet.h - the result of `strobe bench` and its file, bench.json: tables with numbers and texts,
 * how to draw them, and notes. docs/FORMATS.md describes the fields; `strobe report` prints tables
 * and charts from the file. */
#ifndef PRESENT_SHEET_H
#define PRESENT_SHEET_H

#include "base/arena.h"
#include "present/table.h"

struct json_t;
struct markup;
struct str;

enum { SHEET_VERSION = 1, SHEET_LABELS = 8, SHEET_TABLES = 8, SHEET_NOTES = 16 };

/* How a table is drawn: a bar for each row, curves over a column, or texts side by side (only on
 * the page). Columns are referred to by their ids. */
enum sheet_chart_kind { SHEET_NO_CHART, SHEET_BARS, SHEET_LINES, SHEET_TEXTS, SHEET_KINDS };
/* The unit of the column y. */
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
    /* For curves; panel: a column with a picture for each of its texts, NULL: one picture. */
    const char *x, *panel;
    const char *y, *spread; /* spread: the whisker of a bar; NULL: none */
    enum sheet_unit unit;
    bool linear; /* the x axis of curves is linear from 0; otherwise logarithmic */
};

struct sheet_table {
    const char *title; /* NULL: none */
    struct table table;
    struct sheet_chart chart;
    bool drawn_only; /* too long to read: text and Markdown print only its title */
};

struct sheet {
    const char *name;                           /* the suite, "cs336-e2e", or "bench" */
    const char *title;                          /* a sentence */
    const char *text;                           /* the result that it reproduces; NULL: none */
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
/* The same with a table that was made before. */
struct sheet_table *sheet_add_table(struct sheet *s, const char *title, struct table t);
/* Makes the table be drawn as bars. If there are fewer labels, NULL ends them. */
void sheet_bars(struct sheet_table *t, const char *title, const char *y, const char *spread,
                const char *const label[SHEET_LABELS]);
void sheet_note(struct sheet *s, const char *text);

/* Prints all tables with `print`, and titles and notes with `words`, which must escape text from
 * files for that form (visible_append, table_markdown_text). words = NULL: no titles and notes. */
void sheet_print(const struct sheet *s, void (*print)(const struct table *t, struct str *out),
                 void (*words)(struct str *out, const char *text), struct str *out);
/* The caller releases both with json_decref. A table: {"columns", "rows": objects of numbers,
 * "shown": lists of texts}. */
struct json_t *sheet_json(const struct sheet *s);
struct json_t *sheet_table_json(const struct table *t);
/* Writes the sheet to `path`; makes the folder if needed. */
enum status sheet_write(const struct sheet *s, const char *path);

/* Whether a JSON file is a sheet, of any version. If the file cannot be read or is not JSON,
 * returns an error and sets *ret to false. */
enum status sheet_is(const char *path, bool *ret);
enum status sheet_read(const char *path, struct arena *a, struct sheet *ret);

/* Print a table with SHEET_LINES as curves, and one with SHEET_BARS as bars, each as one SVG. */
void sheet_print_curves(const struct sheet_table *t, struct markup *out, struct arena *a);
void sheet_print_bars(const struct sheet_table *t, struct markup *out, struct arena *a);

#endif
