#include "present/plot.h"

#include "base/arena.h"
#include "present/svg.h"

#include <math.h>

/* CSS pixels: the size of a panel and its margins, which have titles; HEAD: above all panels; FOOT:
 * below the legend. */
enum { WIDTH = 460, HEIGHT = 356, LEFT = 86, RIGHT = 24, TOP = 40, BOTTOM = 44 };
enum { HEAD = 34, FOOT = 36 };

static bool has_x(const struct plot_point *p, bool linear_x)
{
    return (p->x > 0 || (linear_x && p->x == 0)) && isfinite(p->x);
}

static bool is_shown(const struct plot_point *p, bool linear_x)
{
    return has_x(p, linear_x) && p->y > 0 && isfinite(p->y);
}

static void widen(struct chart_axis *a, double x)
{
    a->low = fmin(a->low, x);
    a->high = fmax(a->high, x);
}

/* A level far above all curves is left out, because it would squeeze them. */
static bool level_is_near(const struct plot_panel *p, double highest)
{
    return p->level > 0 && p->level < 32 * highest;
}

static struct chart chart_of(const struct plot_panel *p, double left)
{
    struct chart c = {
        .x = {p->x_unit, !p->linear_x, 2, INFINITY, 0, left + LEFT, left + WIDTH - RIGHT},
        .y = {p->unit, true, p->unit == CHART_BYTES ? 4 : 10, INFINITY, 0, HEAD + HEIGHT - BOTTOM,
              HEAD + TOP},
    };
    for (int l = 0; l < p->lines; l++)
        for (int i = 0; i < p->line[l].points; i++) {
            const struct plot_point *q = &p->line[l].point[i];
            if (has_x(q, p->linear_x)) widen(&c.x, q->x);
            if (is_shown(q, p->linear_x)) widen(&c.y, q->y);
        }
    if (!(c.x.high > 0)) c.x.low = c.x.high = 1; /* an empty frame */
    if (!(c.y.high > 0)) c.y.low = c.y.high = 1;
    if (level_is_near(p, c.y.high)) widen(&c.y, p->level);
    if (p->linear_x)
        c.x.low = 0;
    else
        chart_round_out(&c.x);
    chart_round_out(&c.y);
    return c;
}

/* Marks a point that the logarithmic y axis cannot show: 0, negative, or infinite. */
static void print_outside(const struct chart *c, const struct plot_line *l,
                          const struct plot_point *q, struct markup *m)
{
    char text[32];
    if (!has_x(q, !c->x.is_log) || isnan(q->y)) return;
    double up = q->y > 0 ? 1 : -1, edge = q->y > 0 ? c->y.at_high : c->y.at_low;
    markup_printf(m,
                  "<path class=\"chart-outside\" d=\"M%.1f %.1fl-4 %gh8z\"><title>%s, %.6g: %s, "
                  "outside the chart</title></path>\n",
                  chart_place(&c->x, q->x), edge, 7 * up, l->name, q->x,
                  chart_value_text(text, c->y.unit, q->y));
}

static void print_line(const struct chart *c, const struct plot_line *l, struct markup *m)
{
    char text[32];
    markup_printf(m,
                  "<g style=\"--c:var(--run-%d)\">\n<polyline class=\"chart-line chart-dash-%d\" "
                  "points=\"",
                  l->color, l->dash);
    for (int i = 0; i < l->points; i++)
        if (is_shown(&l->point[i], !c->x.is_log))
            markup_printf(m, "%.1f,%.1f ", chart_place(&c->x, l->point[i].x),
                          chart_place(&c->y, l->point[i].y));
    markup_printf(m, "\"/>\n");
    for (int i = 0; i < l->points; i++) {
        const struct plot_point *q = &l->point[i];
        if (!is_shown(q, !c->x.is_log)) {
            print_outside(c, l, q, m);
            continue;
        }
        markup_printf(
            m,
            "<circle class=\"chart-dot%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s, %.6g: "
            "%s%s</title></circle>\n",
            q->hollow ? " chart-hollow" : "", chart_place(&c->x, q->x), chart_place(&c->y, q->y),
            l->name, q->x, chart_value_text(text, c->y.unit, q->y), q->hollow ? " (not run)" : "");
    }
    markup_printf(m, "</g>\n");
}

static void print_panel(const struct plot_panel *p, double left, struct markup *m)
{
    struct chart c = chart_of(p, left);
    svg_text(m, "chart-head", c.x.at_low, HEAD + TOP - 14, "start", p->title);
    chart_print_x_grid(&c, m);
    chart_print_y_grid(&c, m);
    chart_print_x_title(&c, p->x_title, m);
    if (p->level > c.y.low && p->level <= c.y.high)
        chart_print_level(&c, p->level, p->level_name, m);
    for (int i = 0; i < p->edges; i++) chart_print_edge(&c, p->edge[i].x, p->edge[i].name, m);
    for (int l = 0; l < p->lines; l++) print_line(&c, &p->line[l], m);
}

static struct chart_legend legend_of(const struct plot_panel *p, int width, struct arena *a)
{
    struct chart_item *item = ARENA_NEW(a, struct chart_item, p->lines + 1);
    for (int l = 0; l < p->lines; l++)
        item[l] = (struct chart_item){p->line[l].name, arena_printf(a, "run-%d", p->line[l].color),
                                      CHART_LINE, p->line[l].dash};
    return (struct chart_legend){item, p->lines, LEFT, width - LEFT};
}

void plot_print_svg(const char *title, const char *note, const struct plot_panel *panel, int panels,
                    struct markup *m)
{
    struct arena a = {0};
    int width = panels * WIDTH;
    struct chart_legend legend = {0};
    if (panels) legend = legend_of(&panel[0], width, &a);
    int bottom = HEAD + HEIGHT + (int)chart_legend_height(&legend);
    svg_open(m, 0, width, bottom + FOOT, title);
    svg_text(m, "chart-title", LEFT, 30, "start", title);
    for (int i = 0; i < panels; i++) print_panel(&panel[i], i * WIDTH, m);
    chart_print_legend(&legend, HEAD + HEIGHT + 3, m);
    svg_text(m, "chart-soft", LEFT, bottom + 22, "start", note);
    svg_close(m);
    arena_release(&a);
}
