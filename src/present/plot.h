/* plot.h - curves over logarithmic axes, or a linear x, as one SVG (svg.h), with values as
 * tooltips; or in characters. */
#ifndef PRESENT_PLOT_H
#define PRESENT_PLOT_H

#include "present/chart.h"

struct str;

enum { PLOT_COLORS = 7, PLOT_DASHES = 4 };

struct plot_point {
    /* Both positive; a linear x may be 0. Points without a place on the x axis, and y that are not
     * a number, are left out; other y are a mark at the edge of the frame. */
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

/* A vertical line at an x between those of the points. */
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

/* Panels side by side; the legend is of the first. `title` above and `note` below: any text. */
void plot_print_svg(const char *title, const char *note, const struct plot_panel *panel, int panels,
                    struct markup *m);
/* A panel over logarithmic axes in lines of at most 100 characters: curve i is the letter 'a' + i,
 * of several curves at one place the first is shown; the legend says which is which. */
void plot_print_text(const struct plot_panel *p, struct str *s);

#endif
