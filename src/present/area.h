/* area.h - bytes over the course of something, layer upon layer, as one SVG (svg.h). */
#ifndef PRESENT_AREA_H
#define PRESENT_AREA_H

#include "base/base.h"

struct str;

struct area_layer {
    const char *name;
    const char *color; /* chart.h */
    const double *y;   /* bytes in each column */
};

struct area {
    const char *title, *note;
    const struct area_layer *layer; /* the lowest first; one that is nowhere above 0 is left out */
    int layers, columns;
    const char *const *word; /* of each column: what it is, for its tooltip; may be NULL */
    struct area_span {       /* a stretch of columns, to the next one's first */
        const char *name;
        int first;
    } const *span;
    int spans;
    int mark; /* a column that is pointed at, -1: none */
    const char *mark_name;
    double level; /* a horizontal line at this y; 0: none */
    const char *level_name;
};

void area_print_svg(const struct area *a, struct str *s);

#endif
