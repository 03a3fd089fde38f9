#include "present/table_form.h"

#include "base/json.h"
#include "base/str.h"
#include "base/visible.h"
#include "present/sheet.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char giga[] = "GFLOP/s";

enum status table_form_check(const struct table_form *f)
{
    if (f->json + f->csv + f->markdown <= 1) return ST_OK;
    return fail(ST_USAGE, "--json, --csv and --markdown contradict each other; keep one");
}

void table_form_print(const struct table_form *f, const struct table *t, struct str *s)
{
    if (f->csv)
        table_print_csv(t, s);
    else if (f->markdown)
        table_print_markdown(t, s);
    else
        table_print_text(t, s);
}

void table_form_sheet(const struct table_form *f, const struct sheet *x, struct str *s)
{
    void (*print)(const struct table *t, struct str *out) = f->csv        ? table_print_csv
                                                            : f->markdown ? table_print_markdown
                                                                          : table_print_text;
    sheet_print(x, print, f->csv ? NULL : f->markdown ? table_markdown_text : visible_append, s);
}

void table_form_note(const struct table_form *f, const char *text, struct str *s)
{
    if (f->json || f->csv) return;
    str_append(s, "\n");
    for (; *text; text++) /* Markdown needs an empty line between lines */
        str_printf(s, "%c%s", *text, *text == '\n' && f->markdown ? "\n" : "");
    str_append(s, "\n");
}

void table_form_tera(struct table *t, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, t->columns);
    for (int i = 0; i < t->columns; i++) {
        column[i] = t->column[i];
        const char *at = strstr(column[i].title, giga);
        if (at)
            column[i].title = arena_printf(a, "%.*sTFLOP/s%s", (int)(at - column[i].title),
                                           column[i].title, at + strlen(giga));
    }
    t->column = column;
}

void table_form_set_flops(struct table *t, int row, int column, double per_second, struct arena *a)
{
    bool shown_in_giga = strstr(t->column[column].title, giga);
    table_set(t, row, column, 3, per_second * (shown_in_giga ? 1e-9 : 1e-12), a);
    table_at(t, row, column)->number = per_second * 1e-9;
}

void json_print(struct json_t *j, struct str *s)
{
    json_print_with(j, JSON_INDENT(2) | JSON_REAL_PRECISION(9), s);
}
