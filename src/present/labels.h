/* labels.h - names beside points of a picture, as many as find room; private to report/. */
#ifndef PRESENT_LABELS_H
#define PRESENT_LABELS_H

#include "base/base.h"

struct str;

enum { LABELS_MOST = 8, LABEL_LINES = 8 };

struct label_box {
    double left, top, right, bottom;
};

struct labels {
    struct label_box inside;
    const struct label_box *point; /* nothing is written on these */
    int points;
    /* private to labels.c */
    struct label_box label[LABELS_MOST];
    double line[LABEL_LINES];
    int n, lines;
};

/* Labels do not cross the level at `y`. */
void labels_keep_off(struct labels *l, double y);
/* Names point[i] in SVG, of the classes "chart-label" and "chart-leader"; nothing where there is no room. */
void labels_print(struct labels *l, int i, const char *text, struct str *s);

#endif
