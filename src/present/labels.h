/* labels.h - places names next to points of a picture, as many as fit. */
#ifndef PRESENT_LABELS_H
#define PRESENT_LABELS_H

struct markup;

enum { LABELS_MOST = 8, LABEL_LINES = 32 };

struct label_box {
    double left, top, right, bottom;
};

struct label_line {
    double x0, y0, x1, y1;
};

struct labels {
    struct label_box inside;
    const struct label_box *point; /* labels do not cover these */
    int points;
    /* private to labels.c */
    struct label_box label[LABELS_MOST];
    struct label_line line[LABEL_LINES];
    int n, lines;
};

/* Labels will not cross the line from (x0, y0) to (x1, y1). */
void labels_keep_off(struct labels *l, double x0, double y0, double x1, double y1);
/* Prints the name of point[i] in SVG, with classes "chart-label" and "chart-leader", if it fits. */
void labels_print(struct labels *l, int i, const char *text, struct markup *m);

#endif
