/* Draws a panel of curves as text. */
#include "base/str.h"
#include "present/plot.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 78, HEIGHT = 16, MARGIN = 12 };

struct grid {
    char at[HEIGHT][WIDTH + 1]; /* rows from top to bottom */
    struct chart_axis x, y;
};

static bool is_shown(const struct plot_point *p)
{
    return p->x > 0 && p->y > 0 && isfinite(p->x) && isfinite(p->y);
}

static void set_axes(struct grid *g, const struct plot_panel *p)
{
    g->x = (struct chart_axis){p->x_unit, true, 2, INFINITY, 0, 0, WIDTH - 1};
    g->y = (struct chart_axis){p->unit, true, 10, INFINITY, 0, HEIGHT - 1, 0};
    for (int l = 0; l < p->lines; l++)
        for (int i = 0; i < p->line[l].points; i++) {
            const struct plot_point *q = &p->line[l].point[i];
            if (!is_shown(q)) continue;
            g->x.low = fmin(g->x.low, q->x), g->x.high = fmax(g->x.high, q->x);
            g->y.low = fmin(g->y.low, q->y), g->y.high = fmax(g->y.high, q->y);
        }
    if (!(g->x.high > g->x.low)) g->x.low = 1, g->x.high = 2; /* no points, or all at one x */
    if (!(g->y.high > 0)) g->y.low = g->y.high = 1;
    chart_round_out(&g->x);
    chart_round_out(&g->y);
}

static void put(struct grid *g, double x, double y, char letter)
{
    int column = (int)lround(chart_place(&g->x, x)), row = (int)lround(chart_place(&g->y, y));
    if (column < 0 || column >= WIDTH || row < 0 || row >= HEIGHT) return;
    char *to = &g->at[row][column];
    if (*to == ' ') *to = letter;
}

/* Draws a straight line between two points (straight on the logarithmic axes). */
static void put_between(struct grid *g, const struct plot_point *a, const struct plot_point *b,
                        char letter)
{
    int steps = 1 + (int)fabs(chart_place(&g->x, b->x) - chart_place(&g->x, a->x));
    for (int i = 0; i <= steps; i++) {
        double share = (double)i / steps;
        put(g, a->x * pow(b->x / a->x, share), a->y * pow(b->y / a->y, share), letter);
    }
}

static void put_line(struct grid *g, const struct plot_line *l, char letter)
{
    const struct plot_point *last = NULL;
    for (int i = 0; i < l->points; i++) {
        if (!is_shown(&l->point[i])) continue;
        if (last) put_between(g, last, &l->point[i], letter);
        put(g, l->point[i].x, l->point[i].y, letter);
        last = &l->point[i];
    }
}

/* Draws the edges and prints their names; each name ends above its line. */
static void print_edges(struct grid *g, const struct plot_panel *p, struct str *s)
{
    int written = 0;
    str_printf(s, "%*s", MARGIN, "");
    for (int i = 0; i < p->edges; i++) {
        int at = (int)lround(chart_place(&g->x, p->edge[i].x));
        int bytes = (int)strlen(p->edge[i].name), blanks = at + 1 - bytes - written;
        if (at < 0 || at >= WIDTH) continue;
        for (int row = 0; row < HEIGHT; row++)
            if (g->at[row][at] == ' ') g->at[row][at] = '|';
        if (blanks < (written > 0)) continue; /* no space for the name */
        str_printf(s, "%*s%s", blanks, "", p->edge[i].name);
        written += blanks + bytes;
    }
    str_append(s, "\n");
}

static void print_rows(const struct grid *g, struct str *s)
{
    double tick[CHART_TICKS];
    int ticks = chart_ticks(&g->y, tick);
    for (int row = 0; row < HEIGHT; row++) {
        char text[32] = "";
        int end = WIDTH;
        while (end > 0 && g->at[row][end - 1] == ' ') end--;
        for (int i = 0; i < ticks; i++)
            if (row == (int)lround(chart_place(&g->y, tick[i])))
                chart_value_text(text, g->y.unit, tick[i]);
        int wide = 0; /* bytes minus characters; µ has two bytes */
        for (const char *c = text; *c; c++) wide += (*c & 0xc0) == 0x80;
        str_printf(s, "%*s |%.*s\n", MARGIN - 2 + wide, text, end, g->at[row]);
    }
}

static void print_x(const struct grid *g, const char *title, struct str *s)
{
    double tick[CHART_TICKS];
    int written = 0, ticks = chart_ticks(&g->x, tick);
    str_printf(s, "%*s +", MARGIN - 2, "");
    for (int i = 0; i < WIDTH; i++) str_append(s, "-");
    str_printf(s, "\n%*s", MARGIN, "");
    for (int i = 0; i < ticks; i++) {
        char text[32];
        chart_value_text(text, g->x.unit, tick[i]);
        int bytes = (int)strlen(text), place = (int)lround(chart_place(&g->x, tick[i]));
        int at = (int)min_i64(max_i64(place - bytes / 2, 0), WIDTH - bytes) - written;
        if (at < (i > 0)) continue; /* no space */
        str_printf(s, "%*s%s", at, "", text);
        written += at + bytes;
    }
    str_printf(s, "\n%*s%s\n", MARGIN, "", title);
}

void plot_print_text(const struct plot_panel *p, struct str *s)
{
    struct grid g;
    memset(g.at, ' ', sizeof g.at);
    set_axes(&g, p);
    for (int l = 0; l < p->lines && l < 26; l++) put_line(&g, &p->line[l], (char)('a' + l));
    str_printf(s, "%*s%s\n", MARGIN, "", p->title);
    print_edges(&g, p, s);
    print_rows(&g, s);
    print_x(&g, p->x_title, s);
    for (int l = 0; l < p->lines && l < 26; l++)
        str_printf(s, "%*s%c %s\n", MARGIN, "", 'a' + l, p->line[l].name);
}
