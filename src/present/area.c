#include "present/area.h"

#include "base/arena.h"
#include "present/chart.h"
#include "present/svg.h"

/* CSS pixels. HEIGHT: of the frame; SPANS: of the names below the frame; FOOT: below the legend. */
enum { WIDTH = 960, LEFT = 84, RIGHT = 24, TOP = 64, HEIGHT = 320 };
enum { SPANS = 22, SPAN_NAME = 100, FOOT = 36 };

static double sum_at(const struct area *a, int column)
{
    double sum = 0;
    for (int l = 0; l < a->layers; l++) sum += a->layer[l].y[column];
    return sum;
}

static bool is_shown(const struct area *a, int layer)
{
    for (int i = 0; i < a->columns; i++)
        if (a->layer[layer].y[i] > 0) return true;
    return false;
}

/* A level far above all layers is left out, because it would squeeze them. */
static bool level_is_near(const struct area *a, double highest)
{
    return a->level > 0 && a->level < 2 * highest;
}

static struct chart chart_of(const struct area *a)
{
    double high = 1;
    for (int i = 0; i < a->columns; i++)
        if (sum_at(a, i) > high) high = sum_at(a, i);
    if (level_is_near(a, high) && a->level > high) high = a->level;
    return (struct chart){
        .x = {.high = a->columns ? a->columns : 1, .at_low = LEFT, .at_high = WIDTH - RIGHT},
        .y = {.unit = CHART_BYTES,
              .base = 2,
              .high = 1.04 * high,
              .at_low = TOP + HEIGHT,
              .at_high = TOP},
    };
}

/* A polygon along the layer's top from left to right and back along its bottom. */
static void print_layer(const struct chart *c, const struct area *a, int layer, double *below,
                        struct markup *m)
{
    markup_printf(m, "<polygon class=\"chart-layer\" style=\"--c:var(--%s)\" points=\"",
                  a->layer[layer].color);
    for (int i = 0; i < a->columns; i++) {
        double y = chart_place(&c->y, below[i] + a->layer[layer].y[i]);
        markup_printf(m, "%.1f,%.1f %.1f,%.1f ", chart_place(&c->x, i), y,
                      chart_place(&c->x, i + 1), y);
    }
    for (int i = a->columns - 1; i >= 0; i--) {
        double y = chart_place(&c->y, below[i]);
        markup_printf(m, "%.1f,%.1f %.1f,%.1f ", chart_place(&c->x, i + 1), y,
                      chart_place(&c->x, i), y);
        below[i] += a->layer[layer].y[i];
    }
    markup_printf(m, "\"/>\n");
}

static void print_layers(const struct chart *c, const struct area *a, struct markup *m)
{
    struct arena scratch = {0};
    double *below = ARENA_NEW(&scratch, double, a->columns);
    for (int l = 0; l < a->layers; l++)
        if (is_shown(a, l)) print_layer(c, a, l, below, m);
    arena_release(&scratch);
}

static void print_spans(const struct chart *c, const struct area *a, struct markup *m)
{
    for (int i = 0; i < a->spans; i++) {
        double x = chart_place(&c->x, a->span[i].first);
        bool last = x > WIDTH - RIGHT - SPAN_NAME; /* no space for the name to the right */
        markup_printf(m, "<path class=\"chart-grid\" d=\"M%.1f %dV%d\"/>\n", x, TOP,
                      TOP + HEIGHT + SPANS);
        svg_text(m, "chart-soft", last ? x - 5 : x + 5, TOP + HEIGHT + 16, last ? "end" : "start",
                 a->span[i].name);
    }
}

static void print_mark(const struct chart *c, const struct area *a, struct markup *m)
{
    double x = chart_place(&c->x, a->mark + 0.5), y = chart_place(&c->y, sum_at(a, a->mark));
    markup_printf(m, "<path class=\"chart-mark\" d=\"M%.1f %.1fV%d\"/>\n", x, y, TOP - 12);
    svg_text(m, "chart-head", x, TOP - 16, x < WIDTH / 2 ? "start" : "end", a->mark_name);
}

/* Prints an invisible rectangle with a tooltip over each column. */
static void print_tooltips(const struct chart *c, const struct area *a, struct markup *m)
{
    char bytes[32];
    double width = chart_place(&c->x, 1) - chart_place(&c->x, 0);
    for (int i = 0; i < a->columns; i++) {
        markup_printf(m,
                      "<rect class=\"chart-hover\" x=\"%.1f\" width=\"%.1f\" y=\"%d\" "
                      "height=\"%d\"><title>",
                      chart_place(&c->x, i), width, TOP, HEIGHT);
        markup_printf(m, "%s%s%s", a->word ? a->word[i] : "", a->word ? ": " : "",
                      chart_value_text(bytes, CHART_BYTES, sum_at(a, i)));
        for (int l = a->layers - 1; l >= 0; l--) {
            if (!(a->layer[l].y[i] > 0)) continue;
            markup_printf(m, "\n%s %s", a->layer[l].name,
                          chart_value_text(bytes, CHART_BYTES, a->layer[l].y[i]));
        }
        markup_printf(m, "</title></rect>\n");
    }
}

static struct chart_legend legend_of(const struct area *a, struct arena *arena)
{
    struct chart_item *item = ARENA_NEW(arena, struct chart_item, a->layers);
    int items = 0;
    for (int l = 0; l < a->layers; l++)
        if (is_shown(a, l))
            item[items++] =
                (struct chart_item){a->layer[l].name, a->layer[l].color, CHART_LAYER, 0};
    return (struct chart_legend){item, items, LEFT, WIDTH - LEFT};
}

void area_print_svg(const struct area *a, struct markup *m)
{
    struct arena scratch = {0};
    struct chart c = chart_of(a);
    struct chart_legend legend = legend_of(a, &scratch);
    int bottom = TOP + HEIGHT + SPANS + 6 + (int)chart_legend_height(&legend);
    svg_open(m, 0, WIDTH, bottom + FOOT, a->title);
    svg_text(m, "chart-title", LEFT, 30, "start", a->title);
    chart_print_y_grid(&c, m);
    print_layers(&c, a, m);
    print_spans(&c, a, m);
    if (a->level > 0 && a->level <= c.y.high) chart_print_level(&c, a->level, a->level_name, m);
    if (a->mark >= 0 && a->mark < a->columns) print_mark(&c, a, m);
    print_tooltips(&c, a, m);
    chart_print_legend(&legend, TOP + HEIGHT + SPANS + 6, m);
    svg_text(m, "chart-soft", LEFT, bottom + 22, "start", a->note);
    svg_close(m);
    arena_release(&scratch);
}
