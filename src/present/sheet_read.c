/* Reads bench.json: unknown fields are ignored, an unknown version is an error. */
#include "present/sheet.h"

#include "base/file.h"
#include "base/lenient.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { COLUMNS_MOST = 64, ROWS_MOST = 100000, CELLS_MOST = 1000000 };

static const char *word_of(const json_t *object, const char *key, struct arena *a)
{
    const char *text = lenient_text(object, key, a);
    return text ? text : "";
}

static const struct table_column *read_columns(const json_t *columns, int n, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, n);
    for (int c = 0; c < n; c++) {
        const json_t *x = json_array_get(columns, (size_t)c);
        column[c] = (struct table_column){word_of(x, "id", a), word_of(x, "title", a),
                                          word_of(x, "help", a),
                                          json_is_true(json_object_get(x, "is_number"))};
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

static const char *column_of(const struct table *t, const json_t *chart, const char *key,
                             struct arena *a)
{
    const char *id = lenient_text(chart, key, a);
    for (int c = 0; id && c < t->columns; c++)
        if (!strcmp(t->column[c].id, id)) return id;
    return NULL;
}

/* The index of a word in a list; 0 for an unknown word. */
static int index_of(const char *const *words, const char *word)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], word)) return i;
    return 0;
}

/* A chart that names unknown columns is ignored. */
static void read_chart(struct sheet_table *t, const json_t *chart, struct arena *a)
{
    struct sheet_chart c = {.title = lenient_text(chart, "title", a),
                            .x = column_of(&t->table, chart, "x", a),
                            .panel = column_of(&t->table, chart, "panel", a),
                            .y = column_of(&t->table, chart, "y", a),
                            .spread = column_of(&t->table, chart, "spread", a)};
    const json_t *labels = json_object_get(chart, "labels"), *label;
    const char *kind = word_of(chart, "kind", a);
    size_t i;
    c.kind = (enum sheet_chart_kind)index_of(sheet_kind_words, kind);
    c.linear = json_is_true(json_object_get(chart, "linear"));
    c.unit = (enum sheet_unit)index_of(sheet_unit_words, word_of(chart, "unit", a));
    json_array_foreach(labels, i, label) {
        const char *id = json_string_value(label);
        if (id && c.labels < SHEET_LABELS) c.label[c.labels++] = arena_strdup(a, id);
    }
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
    const json_t *tables = json_object_get(j, "tables"), *notes = json_object_get(j, "notes"), *x;
    const json_t *version = json_object_get(j, "v");
    size_t i;
    if (!j || !json_is_array(tables))
        return fail(ST_FORMAT, "%s is not a result of `strobe bench`: it has no tables", path);
    if (!json_is_integer(version) || json_integer_value(version) != SHEET_VERSION)
        return fail(ST_FORMAT,
                    "%s is a result of version %lld, but this program reads version %d: report on "
                    "it with the strobe that wrote it",
                    path, (long long)json_integer_value(version), SHEET_VERSION);
    *s = (struct sheet){.name = word_of(j, "name", a),
                        .title = lenient_text(j, "title", a),
                        .text = lenient_text(j, "text", a),
                        .device = lenient_text(j, "device", a),
                        .date = lenient_text(j, "date", a),
                        .version = lenient_text(j, "version", a),
                        .commit = lenient_text(j, "commit", a),
                        .command = lenient_text(j, "command", a),
                        .path = lenient_utf8(path, (int64_t)strlen(path), a)};
    json_array_foreach(tables, i, x) {
        TRY(read_table(s, x, path, a));
    }
    json_array_foreach(notes, i, x) {
        if (json_is_string(x)) sheet_note(s, arena_strdup(a, json_string_value(x)));
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
