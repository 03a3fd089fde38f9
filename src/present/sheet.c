#include "present/sheet.h"

#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "present/table_cells.h"

#include <stdlib.h>
#include <string.h>

struct sheet_table *sheet_add(struct sheet *s, const char *title, const struct table_column *column,
                              int columns, int rows, struct arena *a)
{
    BUG_IF(s->tables == SHEET_TABLES, "more than %d tables", SHEET_TABLES);
    struct sheet_table *t = &s->table[s->tables++];
    *t = (struct sheet_table){.title = title, .table = table_new(column, columns, rows, a)};
    return t;
}

void sheet_bars(struct sheet_table *t, const char *title, const char *y, const char *spread,
                const char *const label[SHEET_LABELS])
{
    struct sheet_chart *c = &t->chart;
    *c = (struct sheet_chart){.kind = SHEET_BARS, .title = title, .y = y, .spread = spread};
    for (int i = 0; i < SHEET_LABELS && label[i]; i++) c->label[c->labels++] = label[i];
}

void sheet_note(struct sheet *s, const char *text)
{
    if (s->notes < SHEET_NOTES) s->note[s->notes++] = text;
}

void sheet_print(const struct sheet *s, void (*print)(const struct table *t, struct str *out),
                 void (*words)(struct str *out, const char *text), struct str *out)
{
    if (words && s->title) {
        words(out, s->title);
        str_append(out, "\n\n");
    }
    for (int i = 0; i < s->tables; i++) {
        const struct sheet_table *t = &s->table[i];
        if (!words && t->chart.kind == SHEET_TEXTS) continue;
        if (i) str_append(out, "\n");
        if (words && t->title) {
            words(out, t->title);
            str_append(out, t->drawn_only ? ": " : "\n\n");
        }
        if (words && t->drawn_only) {
            str_printf(out, "%d rows, in the file of the result and drawn on its page\n",
                       t->table.rows);
            continue;
        }
        print(&t->table, out);
    }
    for (int i = 0; words && i < s->notes; i++) {
        str_append(out, "\n");
        words(out, s->note[i]);
        str_append(out, "\n");
    }
}

/* --- the file --------------------------------------------------------------------------------- */

static json_t *columns_json(const struct table *t)
{
    json_t *all = json_array();
    for (int c = 0; c < t->columns; c++) {
        const struct table_column *x = &t->column[c];
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:b}", "id", x->id, "title", x->title,
                                             "help", x->help, "is_number", (int)x->is_number));
    }
    return all;
}

/* The texts of the cells. */
static json_t *shown_json(const struct table *t)
{
    json_t *all = json_array();
    for (int row = 0; row < t->rows; row++) {
        json_t *cells = json_array();
        for (int c = 0; c < t->columns; c++)
            json_array_append_new(cells, text_or_null(table_at(t, row, c)->text));
        json_array_append_new(all, cells);
    }
    return all;
}

const char *const sheet_kind_words[SHEET_KINDS + 1] = {"none", "bars", "lines", "texts"};
const char *const sheet_unit_words[SHEET_UNITS + 1] = {"ms",      "bytes", "GB/s",
                                                       "GFLOP/s", "ns",    "us"};

static json_t *chart_json(const struct sheet_chart *c)
{
    if (c->kind == SHEET_NO_CHART) return json_null();
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:o, s:s, s:b}", "kind",
                     sheet_kind_words[c->kind], "title", text_or_null(c->title), "labels",
                     texts_json(c->label, c->labels), "x", text_or_null(c->x), "panel",
                     text_or_null(c->panel), "y", c->y, "spread", text_or_null(c->spread), "unit",
                     sheet_unit_words[c->unit], "linear", (int)c->linear);
}

struct json_t *sheet_json(const struct sheet *s)
{
    json_t *tables = json_array();
    for (int i = 0; i < s->tables; i++) {
        const struct sheet_table *t = &s->table[i];
        json_array_append_new(
            tables, json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "title", text_or_null(t->title),
                              "columns", columns_json(&t->table), "rows", table_json(&t->table),
                              "shown", shown_json(&t->table), "chart", chart_json(&t->chart),
                              "drawn_only", (int)t->drawn_only));
    }
    return json_pack(
        "{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "v", SHEET_VERSION, "kind",
        "bench", "name", s->name, "title", text_or_null(s->title), "text", text_or_null(s->text),
        "device", text_or_null(s->device), "date", text_or_null(s->date), "version",
        text_or_null(s->version), "commit", text_or_null(s->commit), "command",
        text_or_null(s->command), "tables", tables, "notes", texts_json(s->note, s->notes));
}

enum status sheet_write(const struct sheet *s, const char *path)
{
    enum status st = file_make_parent(path);
    json_t *j = sheet_json(s);
    char *text = json_dumps(j, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    BUG_IF(!text, "a sheet is not JSON");
    if (st == ST_OK) st = own_write(path, OWN_BENCH, text, (int64_t)strlen(text));
    free(text);
    json_decref(j);
    return st;
}
