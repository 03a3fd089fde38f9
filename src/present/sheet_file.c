/* bench.json. When it is read, unknown fields are ignored, and an unknown version is an error. */
#include "present/sheet.h"

#include "base/json.h"
#include "base/lenient.h"
#include "base/own.h"
#include "base/record.h"
#include "present/table_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MOST = 64, ROWS_MOST = 100000, CELLS_MOST = 1000000 };

static const char *const kinds[SHEET_KINDS] = {"none", "bars", "lines", "texts"};
static const char *const units[SHEET_UNITS] = {"ms", "bytes", "GB/s", "GFLOP/s", "ns", "us"};

/* clang-format off */
#define S struct table_column
RECORD(column, F(TEXT, "id", id), F(TEXT, "title", title), F(TEXT, "help", help),
       F(FLAG, "is_number", is_number));
#undef S
#define S struct sheet_chart
RECORD(chart, F(NAME, "kind", kind, .names = kinds, .most = SHEET_KINDS), F(TEXT, "title", title),
       F(TEXTS, "labels", label, N(labels), .most = SHEET_LABELS), F(TEXT, "x", x),
       F(TEXT, "panel", panel), F(TEXT, "y", y), F(TEXT, "spread", spread),
       F(NAME, "unit", unit, .names = units, .most = SHEET_UNITS), F(FLAG, "linear", linear));
#undef S
#define S struct sheet
RECORD(sheet, F(TEXT, "name", name), F(TEXT, "title", title), F(TEXT, "text", text),
       F(TEXT, "device", device), F(TEXT, "date", date), F(TEXT, "version", version),
       F(TEXT, "commit", commit), F(TEXT, "command", command),
       F(TEXTS, "notes", note, N(notes), .most = SHEET_NOTES));
#undef S
/* clang-format on */

/* --- writing ---------------------------------------------------------------------------------- */

json_t *sheet_table_json(const struct table *t)
{
    json_t *columns = json_array(), *shown = json_array();
    for (int c = 0; c < t->columns; c++)
        json_array_append_new(columns, record_json(&column_record, &t->column[c]));
    for (int row = 0; row < t->rows; row++) {
        json_t *cells = json_array();
        for (int c = 0; c < t->columns; c++)
            json_array_append_new(cells, text_or_null(table_at(t, row, c)->text));
        json_array_append_new(shown, cells);
    }
    return json_pack("{s:o, s:o, s:o}", "columns", columns, "rows", table_json(t), "shown", shown);
}

struct json_t *sheet_json(const struct sheet *s)
{
    json_t *j = json_pack("{s:i, s:s}", "v", SHEET_VERSION, "kind", "bench");
    json_t *tables = json_array();
    record_add(j, &sheet_record, s);
    for (const struct sheet_table *t = s->table; t < s->table + s->tables; t++) {
        bool drawn = t->chart.kind != SHEET_NO_CHART;
        json_t *table = json_pack("{s:o}", "title", text_or_null(t->title));
        json_t *cells = sheet_table_json(&t->table);
        json_object_update(table, cells);
        json_decref(cells);
        json_object_set_new(table, "chart",
                            drawn ? record_json(&chart_record, &t->chart) : json_null());
        json_object_set_new(table, "drawn_only", json_boolean(t->drawn_only));
        json_array_append_new(tables, table);
    }
    json_object_set_new(j, "tables", tables);
    return j;
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

/* --- reading ---------------------------------------------------------------------------------- */

static void or_empty(const char **text)
{
    if (!*text) *text = "";
}

static const struct table_column *read_columns(const json_t *columns, int n, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, n);
    for (struct table_column *c = column; c < column + n; c++) {
        record_take(&column_record, json_array_get(columns, (size_t)(c - column)), c, a);
        or_empty(&c->id), or_empty(&c->title), or_empty(&c->help);
    }
    return column;
}

static void read_cells(struct table *t, const json_t *rows, const json_t *shown, struct arena *a)
{
    for (int row = 0; row < t->rows; row++) {
        const json_t *numbers = json_array_get(rows, (size_t)row);
        const json_t *texts = json_array_get(shown, (size_t)row);
        for (int c = 0; c < t->columns; c++) {
            const char *text = json_string_value(json_array_get(texts, (size_t)c));
            double x = lenient_number(numbers, t->column[c].id);
            if (text)
                *table_at(t, row, c) =
                    (struct table_cell){arena_strdup(a, text), isfinite(x) ? x : 0};
        }
    }
}

/* A chart that names unknown columns is ignored. */
static void read_chart(struct sheet_table *t, const json_t *chart, struct arena *a)
{
    struct sheet_chart c;
    record_take(&chart_record, chart, &c, a);
    const char **const column[] = {&c.x, &c.panel, &c.y, &c.spread};
    for (int i = 0; i < COUNT_OF(column); i++)
        if (table_find(&t->table, *column[i]) < 0) *column[i] = NULL;
    if ((int)c.kind < 0) c.kind = SHEET_NO_CHART;
    if ((int)c.unit < 0) c.unit = SHEET_MS;
    if (c.y && (c.x || c.kind == SHEET_BARS || c.kind == SHEET_TEXTS)) t->chart = c;
}

static enum status read_table(struct sheet *s, const json_t *j, const char *path, struct arena *a)
{
    const json_t *columns = json_object_get(j, "columns"), *rows = json_object_get(j, "rows");
    size_t n = json_array_size(columns), m = json_array_size(rows);
    if (n < 1 || n > COLUMNS_MOST || m > ROWS_MOST || n * m > CELLS_MOST ||
        s->tables == SHEET_TABLES)
        return fail(ST_FORMAT,
                    "%s has a table of %zu columns and %zu rows, or more than %d tables, which "
                    "`strobe bench` does not write: it is damaged; measure again",
                    path, n, m, SHEET_TABLES);
    struct sheet_table *t = sheet_add(s, lenient_text(j, "title", a),
                                      read_columns(columns, (int)n, a), (int)n, (int)m, a);
    read_cells(&t->table, rows, json_object_get(j, "shown"), a);
    read_chart(t, json_object_get(j, "chart"), a);
    t->drawn_only = json_is_true(json_object_get(j, "drawn_only"));
    return ST_OK;
}

static enum status read_sheet(struct sheet *s, const json_t *j, const char *path, struct arena *a)
{
    const json_t *tables = json_object_get(j, "tables"), *x;
    const json_t *version = json_object_get(j, "v");
    size_t i;
    if (!j || !json_is_array(tables))
        return fail(ST_FORMAT, "%s is not a result of `strobe bench`: it has no tables", path);
    if (!json_is_integer(version) || json_integer_value(version) != SHEET_VERSION)
        return fail(ST_FORMAT,
                    "%s is a result of version %lld, but this program reads version %d: report on "
                    "it with the strobe that wrote it",
                    path, (long long)json_integer_value(version), SHEET_VERSION);
    *s = (struct sheet){.path = lenient_utf8(path, (int64_t)strlen(path), a)};
    record_take(&sheet_record, j, s, a);
    or_empty(&s->name);
    json_array_foreach(tables, i, x) {
        TRY(read_table(s, x, path, a));
    }
    return ST_OK;
}

/* *ret is NULL if the file has no JSON object. */
static enum status load(const char *path, struct arena *a, json_t **ret)
{
    char *data;
    int64_t size;
    TRY(file_read(path, a, &data, &size));
    *ret = lenient_object(data, size);
    return ST_OK;
}

enum status sheet_is(const char *path, bool *ret)
{
    struct arena a = {0};
    json_t *j = NULL;
    enum status st = load(path, &a, &j);
    if (st == ST_OK && !j)
        st = fail(ST_FORMAT,
                  "%s is not valid JSON; it may be truncated: delete it or measure again", path);
    const char *kind = json_string_value(json_object_get(j, "kind"));
    *ret = kind && !strcmp(kind, "bench");
    json_decref(j);
    arena_release(&a);
    return st;
}

enum status sheet_read(const char *path, struct arena *a, struct sheet *ret)
{
    json_t *j = NULL;
    TRY(load(path, a, &j));
    enum status st = read_sheet(ret, j, path, a);
    json_decref(j);
    return st;
}
