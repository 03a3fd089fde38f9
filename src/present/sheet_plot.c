/* Draws a sheet's table: a curve for each label, in a panel for each text of the panel column; or
 * bars. */
#include "present/sheet.h"

#include "base/str.h"
#include "present/plot.h"
#include "present/svg.h"

#include <string.h>

enum { PANELS = 8, LINES = PLOT_COLORS * PLOT_DASHES };

static const char *label_of(const struct sheet_table *t, int row, struct arena *a)
{
    const char *label = "";
    for (int i = 0; i < t->chart.labels; i++) {
        const char *word = table_text_of(&t->table, row, t->chart.label[i]);
        if (*word) label = *label ? arena_printf(a, "%s, %s", label, word) : word;
    }
    return label;
}

/* The index of a text in a list; appends a new text. -1: the list is full. */
static int index_in(const char **list, int *n, int most, const char *text)
{
    for (int i = 0; i < *n; i++)
        if (!strcmp(list[i], text)) return i;
    if (*n == most) return -1;
    list[*n] = text;
    return (*n)++;
}

/* By sheet_unit: the unit of the axis, and the factor that converts to this unit. */
static const enum chart_unit units[] = {CHART_MILLISECONDS, CHART_BYTES,        CHART_BANDWIDTH,
                                        CHART_FLOPS,        CHART_MILLISECONDS, CHART_MILLISECONDS};
static const double scales[] = {1, 1, 1e9, 1e9, 1e-6, 1e-3};

/* Adds the points to the lines; line l of panel p is line[p * LINES + l]. Rows without a line or
 * without y are left out. */
static void set_points(const struct sheet_table *t, const int *at_line, struct plot_line *line,
                       struct arena *a)
{
    const struct table *x = &t->table;
    int at_x = table_find(x, t->chart.x), at_y = table_find(x, t->chart.y);
    int points[PANELS * LINES] = {0};
    double scale = scales[t->chart.unit];
    struct plot_point *point[PANELS * LINES];
    for (int row = 0; row < x->rows; row++)
        if (at_line[row] >= 0) points[at_line[row]]++;
    for (int i = 0; i < PANELS * LINES; i++)
        line[i].point = point[i] = ARENA_NEW(a, struct plot_point, points[i]);
    for (int row = 0; row < x->rows; row++) {
        int i = at_line[row];
        if (i < 0 || !table_at(x, row, at_y)->text) continue;
        point[i][line[i].points++] = (struct plot_point){
            table_at(x, row, at_x)->number, scale * table_at(x, row, at_y)->number, false};
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

void sheet_print_curves(const struct sheet_table *t, struct markup *out, struct arena *a)
{
    const struct table *x = &t->table;
    const char *panel[PANELS] = {0}, *label[LINES] = {0};
    struct plot_panel drawn[PANELS] = {0};
    struct plot_line *line = ARENA_NEW(a, struct plot_line, PANELS * LINES);
    int *at_line = ARENA_NEW(a, int, x->rows);
    int panels = 0, labels = 0, missing = 0;
    for (int row = 0; row < x->rows; row++) {
        int p = index_in(panel, &panels, PANELS, table_text_of(x, row, t->chart.panel));
        int l = index_in(label, &labels, LINES, label_of(t, row, a));
        at_line[row] = p < 0 || l < 0 ? -1 : p * LINES + l;
        missing += at_line[row] < 0;
    }
    for (int i = 0; i < PANELS * LINES; i++) {
        int l = i % LINES;
        line[i].name = label[l] ? label[l] : "";
        line[i].color = l % PLOT_COLORS;
        line[i].dash = l / PLOT_COLORS;
    }
    set_points(t, at_line, line, a);
    for (int p = 0; p < panels; p++) {
        int at_panel = table_find(x, t->chart.panel);
        const char *of = at_panel < 0 ? "" : x->column[at_panel].title;
        drawn[p] = (struct plot_panel){.line = &line[p * LINES], .lines = labels};
        drawn[p].title = *panel[p] ? arena_printf(a, "%s %s", of, panel[p])
                                   : x->column[table_find(x, t->chart.y)].title;
        drawn[p].x_title = x->column[table_find(x, t->chart.x)].title;
        drawn[p].linear_x = t->chart.linear;
        if (ends_with(t->chart.x, "_bytes")) drawn[p].x_unit = CHART_BYTES;
        drawn[p].unit = units[t->chart.unit];
    }
    const char *note = missing ? arena_printf(a, "%d of %d rows are not drawn, only in the table.",
                                              missing, x->rows)
                               : "";
    plot_print_svg(t->chart.title ? t->chart.title : "", note, drawn, panels, out);
}

/* --- bars ------------------------------------------------------------------------------------- */

void sheet_print_bars(const struct sheet_table *t, struct markup *out, struct arena *a)
{
    enum { HEAD = 44, ROW = 26, BAR = 16, LABEL = 170, TRACK = 460, WIDTH = LABEL + TRACK + 110 };
    const struct table *x = &t->table;
    const char **way = ARENA_NEW(a, const char *, x->rows + 1);
    int y = table_find(x, t->chart.y), rows = 0, ways = 0;
    double most = 0, scale = scales[t->chart.unit];
    for (int row = 0; row < x->rows; row++) {
        const struct table_cell *c = table_at(x, row, y);
        rows += c->text != NULL;
        if (c->text && c->number > most) most = c->number;
    }
    svg_open(out, 0, WIDTH, HEAD + ROW * rows + ROW / 2, t->chart.title);
    svg_text(out, "chart-title", LABEL, HEAD - 18, "start", t->chart.title);
    for (int row = 0, at = 0; row < x->rows; row++) {
        const struct table_cell *c = table_at(x, row, y);
        char text[32];
        /* Of several labels the first decides: the same way has one color in every group. */
        int color = at;
        if (t->chart.labels > 1)
            color = index_in(way, &ways, x->rows, table_text_of(x, row, t->chart.label[0]));
        double top = HEAD + ROW * at, width = most > 0 ? TRACK * c->number / most : 0;
        if (!c->text) continue;
        svg_text(out, "", LABEL - 10, top + BAR - 3, "end", label_of(t, row, a));
        markup_printf(out,
                      "<rect class=\"chart-layer\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%d\" style=\"--c: var(--%s)\"/>\n",
                      LABEL, top, width, BAR, arena_printf(a, "run-%d", color % PLOT_COLORS));
        svg_text(out, "chart-soft", LABEL + width + 8, top + BAR - 3, "start",
                 chart_value_text(text, units[t->chart.unit], scale * c->number));
        at++;
    }
    svg_close(out);
}
