#include "report/area.h"

#include "base/arena.h"
#include "base/str.h"
#include "report/svg.h"

/* Lengths in CSS pixels. */
enum {
    WIDTH = 960,
    LEFT = 84,
    RIGHT = 24,
    TOP = 64,
    HEIGHT = 320, /* of the frame */
    SPANS = 22,   /* below it: the names of stretches */
    LEGEND_ROW = 22,
    LEGEND_CELL = 200,
    TICKS_MOST = 8
};

static const char style[] = ".layer{stroke:none;fill-opacity:.85}.hover{fill:transparent}\n"
                            ".mark{stroke:var(--ink)}\n";

struct frame {
    double high; /* bytes at the top */
    int columns;
};

static double place_x(const struct frame *f, int column)
{
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * column / (f->columns ? f->columns : 1);
}

static double place_y(const struct frame *f, double y)
{
    return TOP + HEIGHT * (1 - y / f->high);
}

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

static void print_grid(struct str *s, const struct frame *f)
{
    char text[32];
    double step = 1;
    while (f->high / step > TICKS_MOST) step *= 2;
    for (double y = 0; y <= f->high; y += step) {
        double at = place_y(f, y);
        str_printf(s, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
                   WIDTH - RIGHT, at, at);
        svg_text(s, "faint", LEFT - 6, at + 4, "end", str_bytes(text, y));
    }
}

/* Along the top from left to right, back along what lies below. */
static void print_layer(struct str *s, const struct area *a, const struct frame *f, int layer,
                        double *below)
{
    str_printf(s, "<polygon class=\"layer\" fill=\"var(--c%d)\" points=\"", a->layer[layer].color);
    for (int i = 0; i < a->columns; i++) {
        double y = place_y(f, below[i] + a->layer[layer].y[i]);
        str_printf(s, "%.1f,%.1f %.1f,%.1f ", place_x(f, i), y, place_x(f, i + 1), y);
    }
    for (int i = a->columns - 1; i >= 0; i--) {
        double y = place_y(f, below[i]);
        str_printf(s, "%.1f,%.1f %.1f,%.1f ", place_x(f, i + 1), y, place_x(f, i), y);
        below[i] += a->layer[layer].y[i];
    }
    str_append(s, "\"/>\n");
}

static void print_spans(struct str *s, const struct area *a, const struct frame *f)
{
    for (int i = 0; i < a->spans; i++) {
        double x = place_x(f, a->span[i].first);
        str_printf(s, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x,
                   TOP, TOP + HEIGHT + SPANS);
        bool last = x > WIDTH - RIGHT - LEGEND_CELL / 2; /* to the left of its line there is room */
        svg_text(s, "faint", last ? x - 5 : x + 5, TOP + HEIGHT + 16, last ? "end" : "start",
                 a->span[i].name);
    }
}

static void print_level(struct str *s, const struct area *a, const struct frame *f)
{
    double y = place_y(f, a->level);
    str_printf(s, "<line class=\"level\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
               WIDTH - RIGHT, y, y);
    svg_text(s, "faint", LEFT + 6, y - 5, "start", a->level_name);
}

static void print_mark(struct str *s, const struct area *a, const struct frame *f)
{
    double x = (place_x(f, a->mark) + place_x(f, a->mark + 1)) / 2;
    double y = place_y(f, sum_at(a, a->mark));
    str_printf(s, "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%d\"/>\n", x, x, y,
               TOP - 12);
    svg_text(s, "head", x, TOP - 16, x < WIDTH / 2 ? "start" : "end", a->mark_name);
}

/* A column that shows nothing but what it is. */
static void print_tooltips(struct str *s, const struct area *a, const struct frame *f)
{
    char bytes[32];
    for (int i = 0; i < a->columns; i++) {
        str_printf(s,
                   "<rect class=\"hover\" x=\"%.1f\" width=\"%.1f\" y=\"%d\" height=\"%d\"><title>",
                   place_x(f, i), place_x(f, i + 1) - place_x(f, i), TOP, HEIGHT);
        if (a->word) svg_escape(s, a->word[i]);
        str_printf(s, "%s%s", a->word ? ": " : "", str_bytes(bytes, sum_at(a, i)));
        for (int l = a->layers - 1; l >= 0; l--) {
            if (!(a->layer[l].y[i] > 0)) continue;
            str_append(s, "\n");
            svg_escape(s, a->layer[l].name);
            str_printf(s, " %s", str_bytes(bytes, a->layer[l].y[i]));
        }
        str_append(s, "</title></rect>\n");
    }
}

static void print_legend(struct str *s, const struct area *a)
{
    int n = 0, columns = (WIDTH - LEFT) / LEGEND_CELL;
    for (int l = 0; l < a->layers; l++) {
        if (!is_shown(a, l)) continue;
        int x = LEFT + n % columns * LEGEND_CELL;
        int y = TOP + HEIGHT + SPANS + 12 + n / columns * LEGEND_ROW;
        str_printf(s,
                   "<rect class=\"layer\" fill=\"var(--c%d)\" x=\"%d\" y=\"%d\" width=\"16\" "
                   "height=\"12\"/>\n",
                   a->layer[l].color, x, y);
        svg_text(s, "", x + 24, y + 10, "start", a->layer[l].name);
        n++;
    }
}

void area_print_svg(const struct area *a, struct str *s)
{
    struct frame f = {1, a->columns};
    int shown = 0, row = (WIDTH - LEFT) / LEGEND_CELL;
    for (int i = 0; i < a->columns; i++)
        if (sum_at(a, i) > f.high) f.high = sum_at(a, i);
    for (int l = 0; l < a->layers; l++) shown += is_shown(a, l);
    bool level = a->level > 0 && a->level < 2 * f.high; /* far above, it would say nothing */
    if (level && a->level > f.high) f.high = a->level;
    f.high *= 1.04;
    int bottom = TOP + HEIGHT + SPANS + 12 + ceil_div(shown, row) * LEGEND_ROW;
    svg_open(s, WIDTH, bottom + 26, LEFT, a->title, style);
    print_grid(s, &f);
    struct arena scratch = {0};
    double *below = ARENA_NEW(&scratch, double, a->columns);
    for (int l = 0; l < a->layers; l++)
        if (is_shown(a, l)) print_layer(s, a, &f, l, below);
    arena_release(&scratch);
    print_spans(s, a, &f);
    if (level) print_level(s, a, &f);
    if (a->mark >= 0 && a->mark < a->columns) print_mark(s, a, &f);
    print_tooltips(s, a, &f);
    print_legend(s, a);
    svg_text(s, "faint", LEFT, bottom + 12, "start", a->note);
    svg_close(s);
}
