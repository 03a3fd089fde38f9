#include "present/sheet.h"

#include "base/str.h"
#include "present/table_cells.h"

struct sheet_table *sheet_add_table(struct sheet *s, const char *title, struct table t)
{
    BUG_IF(s->tables == SHEET_TABLES, "more than %d tables", SHEET_TABLES);
    struct sheet_table *all = &s->table[s->tables++];
    *all = (struct sheet_table){.title = title, .table = t};
    return all;
}

struct sheet_table *sheet_add(struct sheet *s, const char *title, const struct table_column *column,
                              int columns, int rows, struct arena *a)
{
    return sheet_add_table(s, title, table_new(column, columns, rows, a));
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
