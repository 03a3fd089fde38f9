/* area.h - a stacked area plot of bytes, as one SVG (svg.h). */
#ifndef PRESENT_AREA_H
#define PRESENT_AREA_H

struct markup;

struct area_layer {
    const char *name;
    const char *color; /* chart.h */
    const double *y;   /* bytes in each column */
};

struct area {
    const char *title, *note;
    const struct area_layer *layer; /* the lowest first; layers without bytes are left out */
    int layers, columns;
    const char *const *word; /* tooltip of each column; may be NULL */
    struct area_span {       /* columns from `first` to the start of the next span */
        const char *name;
        int first;
    } const *span;
    int spans;
    int mark; /* index of the marked column; -1: none */
    const char *mark_name;
    double level; /* a horizontal line at this y; 0: none */
    const char *level_name;
};

void area_print_svg(const struct area *a, struct markup *m);

#endif
