#include "present/chart.h"

#include "present/svg.h"

#include <math.h>
#include <stdio.h>

/* LEGEND_GAP: space after a name; LETTER: the width of a wide letter. */
enum { LEGEND_ROW = 22, LEGEND_GAP = 18, LETTER = 7 };

/* --- axes ------------------------------------------------------------------------------------- */

double chart_place(const struct chart_axis *a, double value)
{
    double share = a->is_log ? log(value / a->low) / log(a->high / a->low)
                             : (value - a->low) / (a->high - a->low);
    return a->at_low + (a->at_high - a->at_low) * share;
}

void chart_round_out(struct chart_axis *a)
{
    a->low = pow(a->base, floor(log(a->low) / log(a->base) + 1e-9));
    a->high = pow(a->base, ceil(log(a->high) / log(a->base) - 1e-9));
    if (a->high <= a->low) a->high = a->low * a->base;
}

static const char *prefixed(char *buffer, double x, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    int i = 0;
    for (; x >= 999.5 && i + 1 < COUNT_OF(prefix); i++) x /= 1e3;
    snprintf(buffer, 32, "%.3g %s%s", x, prefix[i], unit);
    return buffer;
}

static const char *bytes_text(char *buffer, double x)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    for (; x >= 1023.95 && i + 1 < COUNT_OF(units); i++) x /= 1024;
    snprintf(buffer, 32, "%.4g %s", x, units[i]);
    return buffer;
}

const char *chart_value_text(char *buffer, enum chart_unit unit, double x)
{
    switch (unit) {
    case CHART_COUNT:
        return prefixed(buffer, x, "");
    case CHART_FLOPS:
        return prefixed(buffer, x, "FLOP/s");
    case CHART_BANDWIDTH:
        return prefixed(buffer, x, "B/s");
    case CHART_BYTES:
        return bytes_text(buffer, x);
    case CHART_MILLISECONDS:
        if (x < 1)
            snprintf(buffer, 32, x < 1e-3 ? "%.3g ns" : "%.3g µs", x < 1e-3 ? x * 1e6 : x * 1e3);
        else
            snprintf(buffer, 32, x < 1e3 ? "%.3g ms" : "%.3g s", x < 1e3 ? x : x * 1e-3);
        return buffer;
    case CHART_NUMBER:
    case CHART_UNITS:
        break;
    }
    snprintf(buffer, 32, "%.6g", x);
    return buffer;
}

int chart_ticks(const struct chart_axis *a, double tick[CHART_TICKS])
{
    double step = a->is_log ? a->base : 1;
    for (; (a->is_log ? log(a->high / a->low) / log(step) : (a->high - a->low) / step) >
           CHART_TICKS - 1;
         step *= a->base)
        continue;
    double last = a->is_log ? a->high * 1.001 : a->high;
    int n = 0;
    for (double t = a->low; n <= CHART_TICKS - 1 && t <= last; t = a->is_log ? t * step : t + step)
        tick[n++] = t;
    return n;
}

void chart_print_x_grid(const struct chart *c, struct markup *m)
{
    const struct chart_axis *x = &c->x, *y = &c->y;
    double tick[CHART_TICKS];
    char text[32];
    for (int i = 0, n = chart_ticks(x, tick); i < n; i++) {
        double at = chart_place(x, tick[i]);
        markup_printf(m, "<path class=\"chart-grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, y->at_high,
                      y->at_low);
        svg_text(m, "chart-soft", at, y->at_low + 17, "middle",
                 chart_value_text(text, x->unit, tick[i]));
    }
}

void chart_print_y_grid(const struct chart *c, struct markup *m)
{
    const struct chart_axis *x = &c->x, *y = &c->y;
    double tick[CHART_TICKS];
    char text[32];
    for (int i = 0, n = chart_ticks(y, tick); i < n; i++) {
        double at = chart_place(y, tick[i]);
        markup_printf(m, "<path class=\"chart-grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x->at_low, at,
                      x->at_high);
        svg_text(m, "chart-soft", x->at_low - 7, at + 4, "end",
                 chart_value_text(text, y->unit, tick[i]));
    }
}

void chart_print_x_title(const struct chart *c, const char *title, struct markup *m)
{
    svg_text(m, "chart-soft", (c->x.at_low + c->x.at_high) / 2, c->y.at_low + 37, "middle", title);
}

void chart_print_level(const struct chart *c, double y, const char *name, struct markup *m)
{
    double at = chart_place(&c->y, y);
    markup_printf(m, "<path class=\"chart-level\" d=\"M%.1f %.1fH%.1f\"/>\n", c->x.at_low, at,
                  c->x.at_high);
    svg_text(m, "chart-soft", c->x.at_low + 6, at - 5, "start", name);
}

void chart_print_edge(const struct chart *c, double x, const char *name, struct markup *m)
{
    double at = chart_place(&c->x, x);
    markup_printf(m, "<path class=\"chart-level\" d=\"M%.1f %.1fV%.1f\"/>\n", at, c->y.at_high,
                  c->y.at_low);
    svg_text(m, "chart-soft", at - 5, c->y.at_high + 12, "end", name);
}

/* --- the legend ------------------------------------------------------------------------------- */

static const int mark_width[] = {[CHART_LINE] = 34, [CHART_LAYER] = 16, [CHART_POINT] = 11};

static double item_width(const struct chart_item *i)
{
    int letters = 0;
    for (const char *c = i->name; *c; c++) letters += (*c & 0xc0) != 0x80;
    return mark_width[i->mark] + 8 + LETTER * letters + LEGEND_GAP;
}

/* The width of a column of the legend; 0: all names fit into one row. */
static double column_width(const struct chart_legend *l)
{
    double all = 0, widest = 0;
    for (int i = 0; i < l->items; i++) {
        all += item_width(&l->item[i]);
        widest = fmax(widest, item_width(&l->item[i]));
    }
    return all <= l->width ? 0 : widest;
}

static int columns_of(const struct chart_legend *l)
{
    double column = column_width(l);
    if (column == 0) return l->items ? l->items : 1;
    return column < l->width ? (int)(l->width / column) : 1;
}

double chart_legend_height(const struct chart_legend *l)
{
    int columns = columns_of(l);
    return (double)LEGEND_ROW * ((l->items + columns - 1) / columns);
}

static void print_mark(const struct chart_item *i, double x, double y, struct markup *m)
{
    markup_printf(m, "<g style=\"--c:var(--%s)\">", i->color);
    switch (i->mark) {
    case CHART_LINE:
        markup_printf(m, "<path class=\"chart-line chart-dash-%d\" d=\"M%.1f %.1fh34\"/>", i->dash,
                      x, y);
        break;
    case CHART_LAYER:
        markup_printf(m,
                      "<rect class=\"chart-layer\" x=\"%.1f\" y=\"%.1f\" width=\"16\" "
                      "height=\"12\"/>",
                      x, y - 6);
        break;
    case CHART_POINT:
        markup_printf(m, "<circle class=\"chart-point\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>", x + 5.5,
                      y);
    }
    markup_printf(m, "</g>\n");
}

void chart_print_legend(const struct chart_legend *l, double top, struct markup *m)
{
    double column = column_width(l), x = l->left;
    int columns = columns_of(l);
    for (int i = 0; i < l->items; i++) {
        const struct chart_item *item = &l->item[i];
        double y = top + LEGEND_ROW / 2 + (double)LEGEND_ROW * (i / columns);
        if (i % columns == 0) x = l->left;
        print_mark(item, x, y, m);
        svg_text(m, "", x + mark_width[item->mark] + 8, y + 4, "start", item->name);
        x += column > 0 ? column : item_width(item);
    }
}
