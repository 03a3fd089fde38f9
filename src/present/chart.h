/* chart.h - the parts of every picture: axes with ticks, the grid, levels, and the legend.
 *
 * plot.h (lines), area.h (layers) and the roofline use these parts. Lengths are CSS pixels. A color
 * is the name of a CSS variable of web/colors.css without its two leading dashes: "run-2". */
#ifndef PRESENT_CHART_H
#define PRESENT_CHART_H

#include "base/base.h"

struct markup;

/* How values are printed: 64; 20 G; 5 ns, 3 µs, 40 ms, 1.5 s; 64 KiB; 420 TFLOP/s; 4 TB/s */
enum chart_unit {
    CHART_NUMBER,
    CHART_COUNT,
    CHART_MILLISECONDS,
    CHART_BYTES,
    CHART_FLOPS,
    CHART_BANDWIDTH,
    CHART_UNITS
};

struct chart_axis {
    enum chart_unit unit;
    bool is_log;
    double base;      /* ticks are powers of base; on a linear axis multiples of such a power */
    double low, high; /* values at the ends */
    double at_low, at_high; /* positions of the ends */
};

struct chart {
    struct chart_axis x, y;
};

double chart_place(const struct chart_axis *a, double value);
/* Extends both ends of a logarithmic axis to powers of its base, and separates equal ends. */
void chart_round_out(struct chart_axis *a);
/* Computes the values at the ticks; returns their number. A logarithmic axis is rounded out. */
enum { CHART_TICKS = 9 };
int chart_ticks(const struct chart_axis *a, double tick[CHART_TICKS]);
/* The buffer belongs to the caller (32 bytes suffice). */
const char *chart_value_text(char *buffer, enum chart_unit unit, double value);

/* Print grid lines with their values: below the frame (x), to its left (y). */
void chart_print_x_grid(const struct chart *c, struct markup *m);
void chart_print_y_grid(const struct chart *c, struct markup *m);
/* Prints the title of the x axis, below the values. */
void chart_print_x_title(const struct chart *c, const char *title, struct markup *m);
/* Prints a horizontal line across the frame, with its name. */
void chart_print_level(const struct chart *c, double y, const char *name, struct markup *m);
/* Prints a vertical line with its name to the left of its upper end. */
void chart_print_edge(const struct chart *c, double x, const char *name, struct markup *m);

enum chart_mark { CHART_LINE, CHART_LAYER, CHART_POINT };

struct chart_item {
    const char *name;
    const char *color;
    enum chart_mark mark;
    int dash; /* of a line: 0 (none) to 3 */
};

/* Names in one row if they fit, otherwise in columns of equal width. */
struct chart_legend {
    const struct chart_item *item;
    int items;
    double left, width;
};

double chart_legend_height(const struct chart_legend *l);
void chart_print_legend(const struct chart_legend *l, double top, struct markup *m);

#endif
