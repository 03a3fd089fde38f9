/* plot.h - draws curves over a logarithmic y axis and a logarithmic or linear x axis: as one SVG
 * (svg.h) with values as tooltips, or as text. */
#ifndef PRESENT_PLOT_H
#define PRESENT_PLOT_H

#include "present/chart.h"

struct str;

enum { PLOT_COLORS = 7, PLOT_DASHES = 4 };

struct plot_point {
    /* Both should be positive; a linear x may be 0. Points with another x and points whose y is NaN
     * are left out; points with another y are marked at the edge of the frame. */
    double x, y;
    bool hollow; /* known, but not measured */
};

struct plot_line {
    const char *name;
    int color;                      /* 0 ... PLOT_COLORS - 1 */
    int dash;                       /* 0: none ... PLOT_DASHES - 1 */
    const struct plot_point *point; /* by increasing x */
    int points;
};

/* A vertical line at an x within the range of the points. */
struct plot_edge {
    double x;
    const char *name;
};

struct plot_panel {
    const char *title, *x_title;
    enum chart_unit unit; /* of y */
    enum chart_unit x_unit;
    bool linear_x; /* from 0; otherwise logarithmic */
    const struct plot_line *line;
    int lines;
    double level; /* a horizontal line at this y; 0: none */
    const char *level_name;
    const struct plot_edge *edge; /* by increasing x */
    int edges;
};

/* Prints panels side by side, with the legend of the first panel. `title` is above, `note`
 * below. */
void plot_print_svg(const char *title, const char *note, const struct plot_panel *panel, int panels,
                    struct markup *m);
/* Prints a panel with logarithmic axes in lines of at most 100 characters. Curve i is drawn with
 * the letter 'a' + i; where curves meet, the first is shown. A legend names the letters. */
void plot_print_text(const struct plot_panel *p, struct str *s);

#endif
