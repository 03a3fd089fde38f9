#include "present/table.h"

#include "base/heap.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table_cell *table_at(const struct table *t, int row, int column)
{
    BUG_IF(row < 0 || row >= t->rows || column < 0 || column >= t->columns,
           "no cell %d, %d in a table of %d x %d", row, column, t->rows, t->columns);
    return &t->cell[row * t->columns + column];
}

int table_find(const struct table *t, const char *id)
{
    for (int c = 0; id && c < t->columns; c++)
        if (!strcmp(t->column[c].id, id)) return c;
    return -1;
}

const char *table_text_of(const struct table *t, int row, const char *id)
{
    int column = table_find(t, id);
    const char *text = column < 0 ? NULL : table_at(t, row, column)->text;
    return text ? text : "";
}

bool table_column_used(const struct table *t, int column)
{
    for (int row = 0; row < t->rows; row++)
        if (table_at(t, row, column)->text) return true;
    return false;
}

const char *table_why_empty(const struct table *t)
{
    int note = table_find(t, "note");
    for (int row = 0; row < t->rows; row++)
        if (note < 0 || !table_at(t, row, note)->text) return NULL;
    return t->rows && note >= 0 ? table_at(t, 0, note)->text : NULL;
}

/* Measures the printed form (visible.h), since a name may contain any bytes. */
int table_width(const char *text)
{
    int width = 0, n;
    char form[VISIBLE_BYTES];
    for (int64_t left = (int64_t)strlen(text); left > 0; text += n, left -= n) {
        n = visible_step(text, left, false, form);
        for (const char *c = form; *c; c++) width += utf8_begins(*c);
    }
    return width;
}

static const char *shown(const struct table *t, int row, int column)
{
    const char *text = row < 0 ? t->column[column].title : table_at(t, row, column)->text;
    return text ? text : "-";
}

int table_column_width(const struct table *t, int column)
{
    int width = 0;
    for (int row = -1; row < t->rows; row++) {
        int w = table_width(shown(t, row, column));
        if (w > width) width = w;
    }
    return width;
}

static void pad(struct str *s, int n, const char *with)
{
    for (int i = 0; i < n; i++) str_append(s, with);
}

/* --- text ------------------------------------------------------------------------------------- */

/* Wider cells are not aligned, so that a very long cell does not fill all other rows with
 * blanks. */
enum { ALIGNED_MOST = 256 };

/* The width of each column; 0: the column is left out. The caller frees the array. */
static int *widths_of(const struct table *t)
{
    int *width = HEAP_NEW(int, t->columns + 1);
    for (int c = 0; c < t->columns; c++)
        if (table_column_used(t, c)) width[c] = (int)max_i64(1, table_column_width(t, c));
    return width;
}

void table_print_text(const struct table *t, struct str *s)
{
    int *width = widths_of(t);
    for (int row = -1; row < t->rows; row++) {
        const char *gap = "";
        int owed = 0; /* blanks that are written only if a cell follows */
        for (int c = 0; c < t->columns; c++) {
            if (!width[c]) continue;
            const char *text = shown(t, row, c);
            int blank = (int)min_i64(width[c], ALIGNED_MOST) - table_width(text);
            if (blank < 0) blank = 0;
            str_append(s, gap);
            pad(s, owed + (t->column[c].is_number ? blank : 0), " ");
            visible_append(s, text);
            owed = t->column[c].is_number ? 0 : blank;
            gap = "  ";
        }
        str_append(s, "\n");
    }
    free(width);
}

void table_markdown_text(struct str *s, const char *text)
{
    char form[VISIBLE_BYTES];
    bool begins = true;
    int n;
    for (int64_t left = (int64_t)strlen(text); left > 0; text += n, left -= n) {
        n = visible_step(text, left, false, form);
        if (*text == '\n') strcpy(form, " ");
        /* The second set would make a heading, a quotation or code at the beginning of the text. */
        if (strchr("|\\`*_<[&", *form) || (begins && strchr("#>~", *form))) str_append(s, "\\");
        if (*form != ' ') begins = false;
        str_append(s, form);
    }
}

void table_print_markdown(const struct table *t, struct str *s)
{
    int *width = widths_of(t);
    for (int row = -1; row < t->rows; row++) {
        for (int c = 0; c < t->columns; c++) {
            if (!width[c]) continue;
            str_append(s, "| ");
            table_markdown_text(s, shown(t, row, c));
            str_append(s, " ");
        }
        str_append(s, "|\n");
        if (row >= 0) continue;
        for (int c = 0; c < t->columns; c++)
            if (width[c]) str_append(s, t->column[c].is_number ? "|---:" : "|---");
        str_append(s, "|\n");
    }
    free(width);
}

/* --- CSV and JSON ----------------------------------------------------------------------------- */

static bool is_number(const char *text)
{
    char *end;
    double x = strtod(text, &end);
    return end > text && !*end && isfinite(x) && *text != ' ';
}

/* A spreadsheet runs a text that begins like a formula, so such a text gets an apostrophe, which
 * spreadsheets read as "this is text" (docs/FORMATS.md). */
static void print_csv_text(struct str *s, const char *text)
{
    bool formula = *text && strchr("=+-@\t\r\n", *text) && !is_number(text);
    if (!strpbrk(text, ",\"\r\n")) {
        str_printf(s, "%s%s", formula ? "'" : "", text);
        return;
    }
    str_append(s, formula ? "\"'" : "\"");
    for (; *text; text++) {
        if (*text == '"') str_append(s, "\"");
        str_append_bytes(s, text, 1);
    }
    str_append(s, "\"");
}

/* Prints at least ten digits, and as many as are needed to read the same number back. */
static void print_csv_number(struct str *s, double number)
{
    enum { LEAST = 10, MOST = 17 };
    char text[32];
    for (int digits = LEAST; digits <= MOST; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number) break;
    }
    str_append(s, text);
}

void table_print_csv(const struct table *t, struct str *s)
{
    for (int c = 0; c < t->columns; c++) {
        if (c) str_append(s, ",");
        print_csv_text(s, t->column[c].id);
    }
    str_append(s, "\n");
    for (int row = 0; row < t->rows; row++) {
        for (int c = 0; c < t->columns; c++) {
            const struct table_cell *cell = table_at(t, row, c);
            if (c) str_append(s, ",");
            if (!cell->text) continue;
            if (t->column[c].is_number && isnan(cell->number)) continue; /* a word, not a number */
            if (t->column[c].is_number)
                print_csv_number(s, cell->number);
            else
                print_csv_text(s, cell->text);
        }
        str_append(s, "\n");
    }
}

static json_t *cell_json(const struct table_column *column, const struct table_cell *cell)
{
    if (!cell->text) return json_null();
    if (!column->is_number) return json_string(cell->text);
    if (!isfinite(cell->number)) return json_null();
    /* Integers are written as 1024, not as 1024.0. */
    if (cell->number == floor(cell->number) && fabs(cell->number) < 9e15)
        return json_integer((json_int_t)cell->number);
    return json_real(cell->number);
}

struct json_t *table_json(const struct table *t)
{
    json_t *rows = json_array();
    for (int row = 0; row < t->rows; row++) {
        json_t *object = json_object();
        for (int c = 0; c < t->columns; c++)
            json_object_set_new(object, t->column[c].id,
                                cell_json(&t->column[c], table_at(t, row, c)));
        json_array_append_new(rows, object);
    }
    return rows;
}
