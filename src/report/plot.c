#include "report/plot.h"

#include "base/str.h"
#include "report/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Lengths in CSS pixels. */
enum {
    WIDTH = 460,  /* of a panel, with its margins */
    HEIGHT = 356, /* from the top of its title to the bottom of its x title */
    LEFT = 70,
    RIGHT = 24,
    TOP = 40,
    BOTTOM = 44,
    HEAD = 34, /* above all panels */
    LEGEND_ROW = 22,
    LEGEND_CELL = 200, /* at least */
    LEGEND_MARK = 42,  /* before a name */
    LETTER = 7,        /* wider than most */
    TICKS_MOST = 8
};

static const char style[] =
    ".line{fill:none;stroke-width:2}.dashed{stroke-dasharray:7 4}.mark{stroke-width:1.5}\n"
    ".hollow{fill:var(--page)}\n";

/* A logarithmic axis: `low` is at pixel `at_low`, `high` at `at_high`. */
struct axis {
    double low, high;
    double at_low, at_high;
};

static double place(const struct axis *a, double x)
{
    return a->at_low + (a->at_high - a->at_low) * log(x / a->low) / log(a->high / a->low);
}

static bool is_shown(const struct plot_point *p)
{
    return p->x > 0 && p->y > 0 && isfinite(p->x) && isfinite(p->y);
}

/* "3 µs", "40 ms", "1.5 s"; "64 KiB"; "420 TFLOP/s": the buffer belongs to the caller (32 bytes suffice). */
static const char *value_text(char *buffer, enum plot_unit unit, double y)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int u = 0;
    if (unit == PLOT_BYTES) {
        for (; y >= 1024 && u + 1 < COUNT_OF(units); u++) y /= 1024;
        snprintf(buffer, 32, "%.3g %s", y, units[u]);
        return buffer;
    }
    if (unit == PLOT_FLOPS) {
        snprintf(buffer, 32, "%.3g %s", y * (y < 1e12 ? 1e-9 : 1e-12),
                 y < 1e12 ? "GFLOP/s" : "TFLOP/s");
        return buffer;
    }
    double scale = y < 1 ? 1e3 : y < 1e3 ? 1 : 1e-3;
    snprintf(buffer, 32, "%.3g %s", y * scale, y < 1 ? "µs" : y < 1e3 ? "ms" : "s");
    return buffer;
}

static void widen(double *low, double *high, double x)
{
    if (x < *low) *low = x;
    if (x > *high) *high = x;
}

/* Both ends of an axis move out to a power of `base`, and apart if they are one. */
static void round_out(double *low, double *high, double base)
{
    *low = pow(base, floor(log(*low) / log(base) + 1e-9));
    *high = pow(base, ceil(log(*high) / log(base) - 1e-9));
    if (*high <= *low) *high = *low * base;
}

/* A level far above all curves would press them together, and say nothing. */
static bool level_is_near(const struct plot_panel *p, double highest)
{
    return p->level > 0 && p->level < 32 * highest;
}

static void find_axes(const struct plot_panel *p, double left, struct axis *ret_x,
                      struct axis *ret_y)
{
    double x0 = INFINITY, x1 = 0, y0 = INFINITY, y1 = 0;
    for (int l = 0; l < p->lines; l++)
        for (int i = 0; i < p->line[l].points; i++) {
            const struct plot_point *q = &p->line[l].point[i];
            if (!is_shown(q)) continue;
            widen(&x0, &x1, q->x);
            widen(&y0, &y1, q->y);
        }
    if (!(x1 > 0)) x0 = x1 = y0 = y1 = 1; /* an empty frame */
    if (level_is_near(p, y1)) widen(&y0, &y1, p->level);
    round_out(&x0, &x1, 2);
    round_out(&y0, &y1, p->unit == PLOT_BYTES ? 4 : 10);
    *ret_x = (struct axis){x0, x1, left + LEFT, left + WIDTH - RIGHT};
    *ret_y = (struct axis){y0, y1, HEAD + HEIGHT - BOTTOM, HEAD + TOP};
}

/* Lines of the grid at powers of `base`, as many as have room. */
static double tick_step(const struct axis *a, double base)
{
    double step = base;
    while (log(a->high / a->low) / log(step) > TICKS_MOST) step *= base;
    return step;
}

static void print_grid(struct str *s, const struct plot_panel *p, const struct axis *x,
                       const struct axis *y)
{
    char text[32];
    double step = tick_step(x, 2);
    for (double t = x->low; t < x->high * 1.001; t *= step) {
        double at = place(x, t);
        str_printf(s, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                   at, at, y->at_low, y->at_high);
        snprintf(text, sizeof text, "%.6g", t);
        svg_text(s, "faint", at, y->at_low + 16, "middle", text);
    }
    step = tick_step(y, p->unit == PLOT_BYTES ? 4 : 10);
    for (double t = y->low; t < y->high * 1.001; t *= step) {
        double at = place(y, t);
        str_printf(s, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                   x->at_low, x->at_high, at, at);
        svg_text(s, "faint", x->at_low - 6, at + 4, "end", value_text(text, p->unit, t));
    }
}

static void print_line(struct str *s, const struct plot_panel *p, const struct plot_line *l,
                       const struct axis *x, const struct axis *y)
{
    char text[32];
    str_printf(s, "<polyline class=\"line%s\" stroke=\"var(--c%d)\" points=\"",
               l->dashed ? " dashed" : "", l->color);
    for (int i = 0; i < l->points; i++)
        if (is_shown(&l->point[i]))
            str_printf(s, "%.1f,%.1f ", place(x, l->point[i].x), place(y, l->point[i].y));
    str_append(s, "\"/>\n");
    for (int i = 0; i < l->points; i++) {
        const struct plot_point *q = &l->point[i];
        if (!is_shown(q)) continue;
        str_printf(s,
                   "<circle class=\"mark%s\" stroke=\"var(--c%d)\" fill=\"var(--c%d)\" cx=\"%.1f\" "
                   "cy=\"%.1f\" r=\"3\"><title>",
                   q->hollow ? " hollow" : "", l->color, l->color, place(x, q->x), place(y, q->y));
        svg_escape(s, l->name);
        str_printf(s, ", %.6g: %s%s</title></circle>\n", q->x, value_text(text, p->unit, q->y),
                   q->hollow ? " (not run)" : "");
    }
}

static void print_panel(struct str *s, const struct plot_panel *p, double left)
{
    struct axis x, y;
    find_axes(p, left, &x, &y);
    svg_text(s, "head", x.at_low, HEAD + TOP - 14, "start", p->title);
    print_grid(s, p, &x, &y);
    if (p->level > y.low && p->level <= y.high) {
        double at = place(&y, p->level);
        str_printf(s, "<line class=\"level\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                   x.at_low, x.at_high, at, at);
        svg_text(s, "faint", x.at_low + 6, at - 5, "start", p->level_name);
    }
    for (int l = 0; l < p->lines; l++) print_line(s, p, &p->line[l], &x, &y);
    svg_text(s, "faint", (x.at_low + x.at_high) / 2, y.at_low + 36, "middle", p->x_title);
}

/* Of one name and its mark. */
static int legend_width(const struct plot_panel *p)
{
    int width = LEGEND_CELL;
    for (int l = 0; l < p->lines; l++) {
        int wanted = LEGEND_MARK + LETTER * ((int)strlen(p->line[l].name) + 2);
        if (wanted > width) width = wanted;
    }
    return width;
}

static void print_legend(struct str *s, const struct plot_panel *p, int columns, int cell)
{
    for (int l = 0; l < p->lines; l++) {
        double x = LEFT + l % columns * cell, y = HEAD + HEIGHT + 14 + l / columns * LEGEND_ROW;
        str_printf(
            s,
            "<line class=\"line%s\" stroke=\"var(--c%d)\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
            "y2=\"%.1f\"/>\n",
            p->line[l].dashed ? " dashed" : "", p->line[l].color, x, x + 34, y, y);
        svg_text(s, "", x + LEGEND_MARK, y + 4, "start", p->line[l].name);
    }
}

void plot_print_svg(const char *title, const char *note, const struct plot_panel *panel, int panels,
                    struct str *s)
{
    int width = panels * WIDTH, cell = panels ? legend_width(&panel[0]) : LEGEND_CELL;
    int columns = width - LEFT > cell ? (width - LEFT) / cell : 1;
    int rows = panels ? ceil_div(panel[0].lines, columns) : 0;
    int bottom = HEAD + HEIGHT + rows * LEGEND_ROW + 10;
    svg_open(s, width, bottom + 26, LEFT, title, style);
    for (int i = 0; i < panels; i++) print_panel(s, &panel[i], i * WIDTH);
    if (panels) print_legend(s, &panel[0], columns, cell);
    svg_text(s, "faint", LEFT, bottom + 12, "start", note);
    svg_close(s);
}
